// Pages of several books in their pipelines: text passes by scans that wait for the OCR service, where books take turns.
import { test as base, expect } from 'vitest';
import { openPipeline } from '../../packages/test/index.ts';
import type { TestPipeline } from '../../packages/test/test.d.ts';
import { type HandlerContext, waiting } from '../../supabase/functions/_millrace/mod.ts';
import { ocrService } from '../../supabase/functions/_services/ocr.ts';
import type { Row } from '../support/engine.ts';

const ann = 'a11ce000-0000-4000-8000-000000000001';
const bob = 'b0b00000-0000-4000-8000-000000000002';
/** How many pages of a book may wait for the OCR service at once, as the definition of pages says. */
const atService = 50;
const reading = { by: 'text_layer', confidence: 1, lines: [] };

class Shelf {
  pipeline!: TestPipeline;
  /** The pages that were sent to the OCR service, in order. */
  sent: { book: string; submission: number }[] = [];

  /** How many pages a book has, and how many of the first are scans. */
  readonly books = new Map<unknown, { pages: number; scans: number }>();

  /** The results of the stages. */
  readonly stages = {
    split: ({ entity }: { entity: Row }) => {
      const of = this.books.get(entity.id)?.pages ?? 0;
      return Array.from({ length: of }, (_, index) => ({ key: index + 1, of }));
    },
    'pages.text_layer': ({ entity: { book_id, number } }: { entity: Row }) => ({
      ...reading,
      needs_ocr: Number(number) <= (this.books.get(book_id)?.scans ?? 0),
    }),
    'pages.ocr': ({ entity }: { entity: Row }, { submission }: Pick<HandlerContext, 'submission'>) => {
      this.sent.push({ book: String(entity.book_id), submission });
      return waiting(ocrService, `job ${submission}`);
    },
    'pages.blend': { text: '', lines: [], confidence: 1, readings: ['text_layer'], replaced: 0 },
    'pages.label': { running_head: null, page_label: null, headings: [], first_footnote: null },
    metadata: { title: 'b', subtitle: null, author: null, publisher: null, year: null, language: 'en' },
    'toc.find': { first_contents_page: 0, last_contents_page: 0 },
    'toc.outline': { entries: [] },
    page_numbers: { runs: [], explained: 1 },
    headings: { headings: [] },
    structure: { outline: [], unplaced: [], confidence: 1, runs: [] },
    assemble: {
      ...{ bucket: 'books', path: 'b.json', markdown_path: 'b.md', bytes: 1 },
      ...{ pages: 1, missing_pages: [], sections: 0 },
    },
  };

  /** Submits a book of an account. */
  async submit(account_id: string, pages: number, scans = pages): Promise<string> {
    const id = await this.pipeline.begin({ account_id, title: 'b', source_path: `${account_id}/b.pdf` });
    this.books.set(id, { pages, scans });
    return id;
  }

  /** Does all work; returns the books of the pages that were sent to the OCR service meanwhile. */
  async work(): Promise<string[]> {
    const before = this.sent.length;
    await this.pipeline.work();
    return this.sent.slice(before).map(({ book }) => book);
  }

  /** How many pages of a book have each status at a stage. */
  async statuses(book: string, stage: string): Promise<Record<string, number>> {
    const rows = await this.pipeline.sql(
      `select ${stage}_status as status, count(*)::int as n from public.pages where book_id = $1 group by 1`,
      [book],
    );
    return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
  }
}

const test = base.extend<{ shelf: Shelf }>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads a fixture's needs from the pattern of its first argument.
  shelf: async ({}, use) => {
    const shelf = new Shelf();
    await using pipeline = await openPipeline('books', { stages: shelf.stages });
    shelf.pipeline = pipeline;
    await use(shelf);
    expect(await pipeline.sql('select * from millrace.check_invariants()')).toEqual([]);
  },
});

test('pages with a text layer come to their end while a scanned book submitted before waits for OCR', async ({
  shelf,
}) => {
  const scanned = await shelf.submit(ann, 120);
  const text = await shelf.submit(ann, 30, 0);
  await shelf.work();
  expect(await shelf.statuses(scanned, 'ocr')).toEqual({ started: atService, queued: 120 - atService });
  expect(await shelf.statuses(text, 'ocr')).toEqual({ skipped: 30 });
  expect(await shelf.statuses(text, 'label')).toEqual({ completed: 30 });
  expect((await shelf.pipeline.row(text)).status).toBe('completed');
  const read = 'select id, pages_read, pages_labelled from public.book_pipeline_status order by pages desc';
  expect(await shelf.pipeline.sql(read)).toEqual([
    { id: scanned, pages_read: 0, pages_labelled: 0 },
    { id: text, pages_read: 30, pages_labelled: 30 },
  ]);
});

test('pages with a text layer pass by the scans of their own book', async ({ shelf }) => {
  const book = await shelf.submit(ann, 90, 80);
  await shelf.work();
  expect(await shelf.statuses(book, 'blend')).toMatchObject({ completed: 10 });
  expect(await shelf.statuses(book, 'ocr')).toEqual({ started: atService, queued: 80 - atService, skipped: 10 });
});

test('a scanned book of another account has its turn as soon as it comes', async ({ shelf }) => {
  const first = await shelf.submit(ann, 120);
  expect(await shelf.work()).toHaveLength(atService);
  const second = await shelf.submit(bob, 120);
  expect(await shelf.work()).toEqual(Array(atService).fill(second));
  expect(await shelf.statuses(first, 'ocr')).toEqual({ started: atService, queued: 120 - atService });
});

test('scanned books of two accounts take turns, page by page', async ({ shelf }) => {
  const books = [await shelf.submit(ann, 120), await shelf.submit(bob, 120)];
  const sent = await shelf.work();
  expect(sent).toHaveLength(2 * atService);
  const batches = Array.from({ length: atService / 5 }, (_, n) => sent.slice(n * 10, n * 10 + 10));
  const shares = batches.map((batch) => books.map((book) => batch.filter((of) => of === book).length));
  expect(shares).toEqual(Array(atService / 5).fill([5, 5]));
  // The slots of 20 jobs that end, all of the first book, go to that book: the other one has its own.
  const ended = shelf.sent.filter(({ book }) => book === books[0]).slice(0, 20);
  const end = { service: 'ocr', outcome: 'completed', result: { ...reading, by: 'ocr' } };
  const ends = ended.map(({ submission }) => ({ ...end, submission, job_id: `job ${submission}` }));
  await shelf.pipeline.sql('select public.millrace_resume($1)', [JSON.stringify(ends)]);
  expect(await shelf.work()).toEqual(Array(20).fill(books[0]));
});
