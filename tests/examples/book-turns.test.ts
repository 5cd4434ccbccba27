// Pages of several books on the engine: text passes by scans that wait for the OCR service, where books take turns.
import { expect } from 'vitest';
import { spawnAll } from '../support/engine/children.ts';
import { type Engine, type Row, projectTest as test } from '../support/engine.ts';
import { jobEnd } from '../support/sessions.ts';
import { type Claimed, completed, resume, Worker, waiting } from '../support/worker.ts';

const ann = 'a11ce000-0000-4000-8000-000000000001';
const bob = 'b0b00000-0000-4000-8000-000000000002';
/** How many pages of a book may wait for the OCR service at once, as the definition of pages says. */
const atService = 50;

/** Starts a book of an account; its stage split inserts so many pages. */
async function submit(engine: Engine, account: string, count: number): Promise<string> {
  const book = await engine.value<string>(
    `insert into public.books (account_id, title, source_path) values ($1::uuid, 'b', $1::text || '/b.pdf') returning id`,
    [account],
  );
  await engine.sql.query(`update public.books set split_status = 'queued' where id = $1`, [book]);
  const items = Array.from({ length: count }, (_, index) => ({ key: `${index + 1}`, of: count }));
  await spawnAll(engine, items, 'split', 'books');
  return book;
}

/** Does all that is due at a stage of pages, a batch of ten after the other; returns the number of pages. */
async function drain(engine: Engine, stage: string, result: (page: Row) => unknown): Promise<number> {
  const worker = await Worker.of(engine, stage, 'pages');
  let done = 0;
  for (let batch = await worker.take(10); batch.length > 0; ) {
    done += batch.length;
    const items = batch.map((item) => completed(item, result(item.entity)));
    ({ batch } = await worker.complete(items, 10));
  }
  return done;
}

const readLayers = (engine: Engine, scans: string[]) =>
  drain(engine, 'text_layer', ({ book_id }) => ({ needs_ocr: scans.includes(book_id as string) }));

const bookOf = ({ entity }: Claimed) => entity.book_id as string;
const jobOf = ({ attempt }: Claimed) => `job ${attempt}`;

/** Sends pages to the OCR service, ten at a time, until none may go; returns the batches. */
async function send(engine: Engine): Promise<Claimed[][]> {
  const worker = await Worker.of(engine, 'ocr', 'pages');
  const batches: Claimed[][] = [];
  for (let batch = await worker.take(10); batch.length > 0; ) {
    batches.push(batch);
    ({ batch } = await worker.complete(
      batch.map((item) => waiting(item, jobOf(item), 'ocr')),
      10,
    ));
  }
  return batches;
}

/** How many pages of a book have each status at a stage. */
async function statuses(engine: Engine, book: string, stage: string): Promise<Record<string, number>> {
  const rows = await engine.rows<{ status: string; n: number }>(
    `select ${stage}_status as status, count(*)::int as n from public.pages where book_id = $1 group by 1`,
    [book],
  );
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}

test('pages with a text layer come to their end while a scanned book submitted before waits for OCR', async ({
  engine,
}) => {
  const scanned = await submit(engine, ann, 120);
  const text = await submit(engine, ann, 30);
  await readLayers(engine, [scanned]);
  await send(engine);
  for (const stage of ['blend', 'label']) expect(await drain(engine, stage, () => ({ text: '' }))).toBe(30);
  expect(await statuses(engine, scanned, 'ocr')).toEqual({ started: atService, queued: 120 - atService });
  expect(await statuses(engine, text, 'ocr')).toEqual({ skipped: 30 });
  expect(await statuses(engine, text, 'label')).toEqual({ completed: 30 });
  expect(
    await engine.rows('select id, pages_read, pages_labelled from public.book_pipeline_status order by pages desc'),
  ).toEqual([
    { id: scanned, pages_read: 0, pages_labelled: 0 },
    { id: text, pages_read: 30, pages_labelled: 30 },
  ]);
});

test('pages with a text layer pass by the scans of their own book', async ({ engine }) => {
  const book = await submit(engine, ann, 90);
  await drain(engine, 'text_layer', ({ number }) => ({ needs_ocr: (number as number) <= 80 }));
  await send(engine);
  expect(await drain(engine, 'blend', () => ({ text: '' }))).toBe(10);
  expect(await statuses(engine, book, 'ocr')).toEqual({ started: atService, queued: 80 - atService, skipped: 10 });
});

test('a scanned book of another account has its turn as soon as it comes', async ({ engine }) => {
  const first = await submit(engine, ann, 120);
  await readLayers(engine, [first]);
  expect((await send(engine)).flat()).toHaveLength(atService);
  const second = await submit(engine, bob, 120);
  await readLayers(engine, [second]);
  expect((await send(engine)).flat().map(bookOf)).toEqual(Array(atService).fill(second));
  expect(await statuses(engine, first, 'ocr')).toEqual({ started: atService, queued: 120 - atService });
});

test('scanned books of two accounts take turns, page by page', async ({ engine }) => {
  const books = [await submit(engine, ann, 120), await submit(engine, bob, 120)];
  await readLayers(engine, books);
  const sent = await send(engine);
  const shares = sent.map((batch) => books.map((book) => batch.filter((item) => bookOf(item) === book).length));
  expect(shares).toEqual(Array(atService / 5).fill([5, 5]));
  // The places of 20 jobs that end, all of the first book, go to that book: the other one has its own.
  const ended = sent.flat().filter((item) => bookOf(item) === books[0]);
  const ends = ended.slice(0, 20).map((item) => jobEnd(item, jobOf(item), { service: 'ocr' }));
  await resume(engine, ends);
  expect((await send(engine)).flat().map(bookOf)).toEqual(Array(20).fill(books[0]));
});
