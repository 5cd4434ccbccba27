import { z } from 'zod';
import { bodiesOf } from '../_books/contents-body.ts';
import { contentsRange } from '../_books/contents-range.ts';
import { runsOf } from '../_books/page-numbers.ts';
import { type PageRow, readPages } from '../_books/page-rows.ts';
import { readContents } from '../_books/read-contents.ts';
import { defineStage, type HandlerContext, PermanentError, RetriableError } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quote } from '../_millrace/model/prompt.ts';
import { toc } from '../_pipelines/toc.ts';
import { extractResult, findResult } from '../_pipelines/toc-results.ts';
import { prompt } from './prompt.ts';

const MAX_TEXT = 60_000;
// Around the pages that were found: enough to see where the contents begin and end, and what is printed on every page.
const PAGES_BEFORE = 30;
const PAGES_AFTER = 100;

const input = z.object({ entity: z.object({ id: z.string() }), needs: z.object({ find: findResult }) });

/**
 * Reads the entries of a table of contents: by the form of its lines where that explains them, else by asking the model, with
 * a proposal by that form. Throws a RetriableError while pages that it goes on to have not been read.
 */
export async function extractEntries({ entity, needs: { find } }: z.output<typeof input>, context: HandlerContext) {
  const { first_contents_page: first, last_contents_page: last } = find;
  const pages = await readPages(entity.id, context.env, Math.max(1, first - PAGES_BEFORE), last + PAGES_AFTER);
  const all = bodiesOf(pages, runsOf(pages));
  const range = contentsRange(find, all);
  checkRead(pages, range.last_page);
  const bodies = all.filter(({ page }) => page >= range.first_page && page <= range.last_page);
  const lines = bodies.flatMap((page) => page.lines.map(({ text }) => text));
  if (lines.length === 0) {
    throw new PermanentError('no_content', `Pages ${range.first_page} to ${range.last_page} have no text.`);
  }
  const { entries, sure } = readContents(bodies);
  if (sure && range.agreement === 1) return { entries };
  const question = [
    quote('proposal', JSON.stringify({ entries }), MAX_TEXT),
    quote('contents', lines.join('\n'), MAX_TEXT),
  ].join('\n\n');
  return askModel({ name: 'contents', schema: extractResult, prompt, input: question }, context);
}

export const extract = defineStage({
  pipeline: toc,
  stage: 'extract',
  input,
  output: extractResult,
  handler: extractEntries,
  services: [model],
  finish: finishAnswer(extractResult),
  settings: [modelSettings],
});

/** A table that ends on the last page that has been read may go on. */
function checkRead(pages: readonly PageRow[], last: number): void {
  const next = pages.find(({ number }) => number === last + 1);
  if (!next || next.blend_result) return;
  throw new RetriableError(
    'pages_not_read',
    `The contents reach to page ${last}, and page ${last + 1} has not been read yet: they may go on there.`,
  );
}
