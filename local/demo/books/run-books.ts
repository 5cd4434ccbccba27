// The demo of the books pipelines, on a stack of its own.
import type pg from 'pg';
import pc from 'picocolors';
import { readSettings } from '../../platform/settings.ts';
import { heading, onAStack, print } from '../on-a-stack.ts';
import { printCosts } from '../print-costs.ts';
import { demoSettings } from '../settings.ts';
import { stuck } from '../watch-progress.ts';
import { wrapText } from '../wrap-text.ts';
import { addBook, documentLink, readBookSource } from './book-source.ts';
import { bookSteps } from './next-steps-books.ts';
import { type FinishedBook, printMetadata, printOutline, readFinishedBook } from './report-book.ts';
import { bookWatcher } from './watch-book.ts';

const startStatement = "update books set split_status = 'queued';";
const costs = {
  view: 'book_costs',
  by: ['account_id'],
  entities: 'books',
  prices: ['LLM_PRICE_INPUT', 'LLM_PRICE_OUTPUT'],
};

/** Runs the books pipelines on one book. Resolves to the exit code. */
export async function runBooks(
  { keep, files: [file] }: { keep: boolean; files: string[] },
  ending: AbortSignal,
): Promise<number> {
  const source = await readBookSource(file);
  const settings = demoSettings(readSettings(), 'books');
  const title = 'Millrace: from the pages of a book to one document, on Supabase without Docker';
  return onAStack({ title, settings, keep, ending }, async (stack, watching) => {
    const { client } = watching;
    heading(
      `2. ${file === undefined ? 'The sample book' : source.name}, uploaded to Storage and started by one SQL update`,
    );
    const bookId = await addBook(source, stack);
    print(`  ${pc.cyan(startStatement)}\n`);
    await client.query(startStatement);
    const watch = bookWatcher(watching, bookId);
    let end = await watch();
    if (end === 'asks') {
      await answerQuestion(client);
      end = await watch();
    }
    if (ending.aborted) return undefined;

    const book = await readFinishedBook(client, bookId);
    if (book.structure) {
      heading('3. What the title page says');
      printMetadata(book, print);
      heading('4. The table of contents');
      printOutline(book, print);
    }
    const links = book.assembled ? [await documentLink(book.assembled.markdown_path, stack)] : [];
    printDocument(book);
    heading(`${book.assembled ? '6. ' : ''}What it cost, its pages and contents included, by account`);
    await printCosts(client, costs, settings.isFree, print);
    return {
      subject: {
        name: 'Runs',
        count: ({ runs, finished }) => `${runs}, of the book, its contents and its pages; ${finished} completed`,
        last: 'stage',
      },
      failed: end !== 'over' || book.assembled === null,
      complaint: end === 'stuck' ? stuck : undefined,
      nextSteps: bookSteps(links),
    };
  });
}

/** Answers the question about an uncertain outline in the place of a person. */
async function answerQuestion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    'select attempt_id as id from public.millrace_decisions where closed_at is null',
  );
  for (const { id } of rows) {
    const statement = `select millrace_decide(${id}, '{"keep": "all"}');`;
    print('\n  The outline is uncertain, so the stage review waits for a person. The demo answers for you:');
    print(`  ${pc.cyan(statement)}\n`);
    await client.query(statement);
  }
}

function printDocument({ assembled, failures, failedPages }: FinishedBook): void {
  heading(assembled ? '5. The document' : 'There is no document');
  if (assembled) {
    print(`  ${pc.dim('Storage'.padEnd(11))}the bucket ${assembled.bucket}:`);
    print(`  ${''.padEnd(11)}${assembled.path}`);
    print(`  ${pc.dim(''.padEnd(11))}and the same as Markdown, ending in .md`);
    print(
      `  ${pc.dim('Contains'.padEnd(11))}${assembled.pages} pages, ${assembled.sections} entries in the outline, ${assembled.bytes} bytes`,
    );
  }
  for (const failure of [...failures, ...failedPages.slice(0, 10)]) {
    const [first = '', ...rest] = wrapText(failure, 86);
    print(`  ${pc.red('✗')} ${first}`);
    for (const line of rest) print(`    ${line}`);
  }
  if (failedPages.length > 10) print(`    and ${failedPages.length - 10} more pages`);
}
