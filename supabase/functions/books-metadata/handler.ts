import { z } from 'zod';
import { presentOrNull } from '../_books/absent-words.ts';
import { readPages } from '../_books/page-rows.ts';
import { readTitlePage } from '../_books/title-page.ts';
import { defineStage, type HandlerContext, PermanentError, Waiting } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quote } from '../_millrace/model/prompt.ts';
import { books, firstPages } from '../_pipelines/books.ts';
import { metadataResult } from '../_pipelines/books-results.ts';
import { prompt } from './prompt.ts';

const MAX_TEXT = 16_000;

const absent = { subtitle: 'no subtitle', author_name: 'no author', publisher_name: 'no publisher', year: 'no year' };
const text = (description: string) => z.string().min(1).max(300).describe(description);
const answer = z.object({
  title: text('The title of the book'),
  subtitle: text(`Its subtitle, or "${absent.subtitle}"`),
  author_name: text(`Its author or authors, or "${absent.author_name}"`),
  publisher_name: text(`Its publisher, or "${absent.publisher_name}"`),
  year: z.string().max(10).describe(`The year of publication in four digits, or "${absent.year}"`),
  language: z
    .enum(['en', 'de', 'fr', 'es', 'it', 'nl', 'pt', 'other'])
    .describe('The language in which the text is written'),
});
const readAnswer = finishAnswer(answer);

const input = z.object({ entity: z.object({ id: z.string(), title: z.string() }) });

/** Asks the model for a book's title, author and so on, by those of its first pages that have been read. */
export async function describeBook(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<z.input<typeof metadataResult> | Waiting> {
  const pages = (await readPages(entity.id, context.env, 1, firstPages.metadata)).filter(
    (page) => page.blend_result?.text,
  );
  if (pages.length === 0) throw new PermanentError('no_content', 'None of the first pages has any text.');
  const { title, subtitle, author, publisher, year } = readTitlePage(pages);
  const proposed = {
    title: title ?? entity.title,
    subtitle: subtitle ?? absent.subtitle,
    author_name: author ?? absent.author_name,
    publisher_name: publisher ?? absent.publisher_name,
    year: year ?? absent.year,
  };
  const texts = pages.map(({ number, blend_result: page }) => `# Page ${number}\n\n${page?.text}`);
  const question = [
    quote('proposal', JSON.stringify(proposed, null, 2), MAX_TEXT),
    quote('first_pages', texts.join('\n\n'), MAX_TEXT),
  ].join('\n\n');
  const answered = await askModel({ name: 'book_metadata', schema: answer, prompt, input: question }, context);
  return answered instanceof Waiting ? answered : toMetadata(answered);
}

export const metadata = defineStage({
  pipeline: books,
  stage: 'metadata',
  input,
  output: metadataResult,
  handler: describeBook,
  services: [model],
  finish: async (job, context) => toMetadata(await readAnswer(job, context)),
  settings: [modelSettings],
});

function toMetadata(given: z.output<typeof answer>): z.input<typeof metadataResult> {
  const orNull = (field: keyof typeof absent) => presentOrNull(given[field], absent[field]);
  const year = Number(/\b\d{4}\b/.exec(given.year)?.[0]);
  return {
    title: given.title.trim(),
    subtitle: orNull('subtitle'),
    author: orNull('author_name'),
    publisher: orNull('publisher_name'),
    year: year || null,
    language: given.language,
  };
}
