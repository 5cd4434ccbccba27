import { z } from 'zod';
import { readContents } from '../_books/contents-lines.ts';
import { partsOf } from '../_books/page-parts.ts';
import { readPages } from '../_books/page-rows.ts';
import { toc } from '../_pipelines/toc.ts';
import { extractResult, findResult } from '../_pipelines/toc-results.ts';
import { PermanentError } from '../_shared/errors.ts';
import { askModel, finishAnswer, model } from '../_shared/model.ts';
import { modelSettings } from '../_shared/model-settings.ts';
import { quote } from '../_shared/prompt.ts';
import { defineStage, type HandlerContext } from '../_shared/stage.ts';
import { prompt } from './prompt.ts';

const MAX_TEXT = 60_000;

const input = z.object({ entity: z.object({ id: z.string() }), needs: z.object({ find: findResult }) });

/** Reads the entries of a table of contents: by their dotted leaders where these explain it, else by asking the model. */
export async function extractEntries({ entity, needs: { find } }: z.output<typeof input>, context: HandlerContext) {
  const pages = await readPages(entity.id, context.env, find.first_contents_page, find.last_contents_page);
  const lines = pages.flatMap((page) => (page.blend_result ? partsOf(page.blend_result, page.label_result).body : []));
  if (lines.length === 0) {
    throw new PermanentError(
      'no_content',
      `Pages ${find.first_contents_page} to ${find.last_contents_page} have no text.`,
    );
  }
  const { entries, sure } = readContents(lines);
  if (sure) return { entries };
  const question = quote('contents', lines.join('\n'), MAX_TEXT);
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
