// The demo of the books pipelines, on a stack of its own.
import pg from 'pg';
import pc from 'picocolors';
import { readSettings } from '../settings.ts';
import { startStack } from '../stack.ts';
import { addBook, documentLink, readBookSource } from './book-source.ts';
import { functionTroubles } from './function-troubles.ts';
import { printBookSteps } from './next-steps-books.ts';
import { printInvariants, printTotals } from './report.ts';
import { type FinishedBook, printMetadata, printOutline, readFinishedBook } from './report-book.ts';
import { demoSettings } from './settings.ts';
import { bookWatcher } from './watch-book.ts';
import { wrapText } from './wrap-text.ts';

const print = (line: string) => console.log(line);
const heading = (text: string) => print(`\n${pc.bold(text)}`);
const startStatement = "update books set split_status = 'queued';";

/** Runs the books pipelines on one book. Resolves to the exit code. */
export async function runBooks(
  { keep, file }: { keep: boolean; file?: string },
  ending: AbortController,
): Promise<number> {
  const cleanUp: (() => Promise<unknown>)[] = [];
  const troubles = functionTroubles();
  try {
    const source = await readBookSource(file);
    const settings = demoSettings(readSettings(), 'books');
    heading('Millrace: from the pages of a book to one document, on Supabase without Docker');
    for (const line of settings.modelNote) print(pc.dim(`  ${line}`));
    for (const line of settings.warnings) print(pc.yellow(`  ${line}`));

    heading('1. Starting the stack');
    const started = Date.now();
    const stack = await startStack({
      env: settings.env,
      progress: (message) => print(`  ${message}`),
      log: troubles.add,
    });
    cleanUp.push(() => stack.stop());
    print(`  ready in ${((Date.now() - started) / 1000).toFixed(1)} s`);
    if (ending.signal.aborted) return 130;
    const client = new pg.Client({ connectionString: stack.dbUrl });
    client.on('error', () => {});
    await client.connect();
    cleanUp.push(() => client.end());

    heading(`2. ${source.name}, uploaded to Storage and started by one SQL update`);
    const bookId = await addBook(source, stack);
    print(`  ${pc.cyan(startStatement)}\n`);
    await client.query(startStatement);
    const watch = bookWatcher({
      client,
      bookId,
      limitMs: Math.max(settings.limitMs, 180_000),
      signal: ending.signal,
      out: process.stdout,
    });
    let end = await watch();
    if (end === 'asks') {
      await answerQuestion(client);
      end = await watch();
    }

    const book = await readFinishedBook(client, bookId);
    if (book.structure) {
      heading('3. What the title page says');
      printMetadata(book, print);
      heading('4. The table of contents');
      printOutline(book, print);
    }
    const links = book.assembled ? [await documentLink(book.assembled.markdown_path, stack)] : [];
    printDocument(book);

    heading('In total');
    const count = ({ runs, finished }: { runs: number; finished: number }) =>
      `${runs}, of the book, its contents and its pages; ${finished} completed`;
    await printTotals(client, { subject: 'Runs', count, last: 'stage' }, print);
    const violations = await printInvariants(client, print);
    const failed = end !== 'over' || violations > 0 || book.assembled === null;
    if (end === 'stuck') print(pc.red('\nNothing has moved for some minutes: it was given up.'));
    if (failed && troubles.lines().length > 0) {
      heading('What the functions warned of last');
      for (const line of troubles.lines()) print(pc.dim(`  ${line}`));
    }

    printBookSteps(keep, stack, links, print);
    if (keep && !ending.signal.aborted) {
      await new Promise((resolve) => ending.signal.addEventListener('abort', resolve, { once: true }));
    }
    return failed ? 1 : 0;
  } finally {
    if (keep || ending.signal.aborted) print(pc.dim('\nstopping …'));
    for (const step of cleanUp.reverse()) await step();
  }
}

/** An uncertain outline waits for a person: the demo answers in the place of one, as one would. */
async function answerQuestion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    'select attempt_id as id from public.pipeline_decisions where closed_at is null',
  );
  for (const { id } of rows) {
    const statement = `select pipeline_decide(${id}, '{"keep": "all"}');`;
    print('\n  The outline is uncertain, so the stage review waits for a person. The demo answers for you:');
    print(`  ${pc.cyan(statement)}\n`);
    await client.query(statement);
  }
}

function printDocument({ assembled, failures, failedPages }: FinishedBook): void {
  heading(assembled ? '5. The document' : 'There is no document');
  if (assembled) {
    print(`  ${pc.dim('Storage'.padEnd(11))}bucket ${assembled.bucket}: ${assembled.path}`);
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
