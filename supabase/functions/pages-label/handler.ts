import { z } from 'zod';
import { presentOrNull } from '../_books/absent-words.ts';
import { proposeLabels } from '../_books/page-layout.ts';
import { defineStage, type HandlerContext, Waiting } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quote } from '../_millrace/model/prompt.ts';
import { pages } from '../_pipelines/pages.ts';
import { blendResult, type LabelResult, labelResult } from '../_pipelines/pages-results.ts';
import { prompt } from './prompt.ts';

const MAX_PAGE_TEXT = 12_000;
const mostTitles = 12;

const absent = {
  running_head_line: 'nothing',
  page_label: 'unnumbered',
  first_footnote_line: 'none',
};
const line = z.string().max(400);

/** The form of the model's answer; `titles` is how many section titles it may name at most. */
const answerFor = (titles: number) =>
  z.object({
    running_head_line: line.describe(
      `The top line, where it repeats what book or chapter is called, or "${absent.running_head_line}"`,
    ),
    page_label: line.describe(`The number as printed on the page, or "${absent.page_label}"`),
    section_title_lines: z.array(line).max(titles).describe('Titles of chapters and sections that begin here'),
    first_footnote_line: line.describe(`The line with which the footnotes begin, or "${absent.first_footnote_line}"`),
  });
const answer = answerFor(mostTitles);
const readAnswer = finishAnswer(answer);

const input = z.object({ needs: z.object({ blend: blendResult }) });

/** Asks the model what is what on a page, with a proposal by its layout. An empty page is nothing to ask about. */
export async function labelPage(
  { needs: { blend } }: z.output<typeof input>,
  context: HandlerContext,
): Promise<LabelResult | Waiting> {
  const proposal = proposeLabels(blend.lines, blend.readings[0] === 'ocr');
  if (blend.lines.length === 0) return proposal;
  const titles = proposal.headings.slice(0, mostTitles);
  const proposed = {
    running_head_line: proposal.running_head ?? absent.running_head_line,
    page_label: proposal.page_label ?? absent.page_label,
    section_title_lines: titles,
    first_footnote_line: proposal.first_footnote ?? absent.first_footnote_line,
  };
  const question = [
    quote('proposal', JSON.stringify(proposed, null, 2), MAX_PAGE_TEXT),
    quote('page', blend.text, MAX_PAGE_TEXT),
  ].join('\n\n');
  const schema = answerFor(titles.length);
  const answered = await askModel({ name: 'page_labels', schema, prompt, input: question }, context);
  return answered instanceof Waiting ? answered : toLabels(answered);
}

export const label = defineStage({
  pipeline: pages,
  stage: 'label',
  input,
  output: labelResult,
  handler: labelPage,
  services: [model],
  finish: async (job, context) => toLabels(await readAnswer(job, context)),
  settings: [modelSettings],
});

function toLabels(given: z.output<typeof answer>): LabelResult {
  const orNull = (field: keyof typeof absent) => presentOrNull(given[field], absent[field]);
  return {
    running_head: orNull('running_head_line'),
    page_label: orNull('page_label'),
    headings: given.section_title_lines.map((text) => text.trim()).filter((text) => text !== ''),
    first_footnote: orNull('first_footnote_line'),
  };
}
