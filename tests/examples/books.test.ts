import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sampleBookText } from '../../local/demo/samples/books/sample-book.ts';
import type { BookDocument } from '../../supabase/functions/_books/book-document.ts';
import { firstPages } from '../../supabase/functions/_pipelines/books.ts';
import { lockedPdf } from '../support/examples/documents.ts';
import { pageRows, smallBook, smallBookPdf } from '../support/examples/small-book.ts';
import { type Attempt, BooksStack, type Caller, queueBook, submitBook } from '../support/stack/books-stack.ts';

let books: BooksStack;
let alice: Caller;
let bob: Caller;
let small: string;
let long: string;
let unsure: string;

beforeAll(async () => {
  books = await BooksStack.start();
  [alice, bob] = await Promise.all([books.user(), books.user()]);
  // All at once: the tests below wait for what becomes of them.
  [small, long, unsure] = await Promise.all([
    submitBook(alice, { bytes: await smallBookPdf(), title: 'bells.pdf' }),
    submitBook(alice, { bytes: sampleBookText(), mediaType: 'text/plain' }),
    submitBook(alice, { bytes: textWithoutContents(), mediaType: 'text/plain', title: 'No contents' }),
  ]);
});
afterEach(() => books.expectSound());
afterAll(() => books.stop());

function textWithoutContents(): string {
  const page = (text: string) =>
    `${text}\nThis page goes on for a while about rope, wood and weather, as such pages do.`;
  return ['One Thing First', 'Another Thing After It', 'The Last Thing'].map(page).join('\f');
}

const when = (attempts: Attempt[], stage: string) => attempts.find((attempt) => attempt.stage === stage) as Attempt;

async function documentOf(id: string): Promise<BookDocument> {
  const { path } = (await books.book(id)).assemble_result as { path: string };
  const { data } = await alice.storage.from('books').download(path);
  return JSON.parse((await data?.text()) ?? '');
}

describe('a book of text, a scan, and a scan with a text layer', () => {
  test('becomes one document whose outline leads to the pages', async () => {
    expect(await books.settled(small)).toBe('completed');
    const document = await documentOf(small);
    expect(document.title).toBe(smallBook.title);
    expect(document.outline.map(({ title, page }) => [title, page])).toEqual(smallBook.outline);
    expect(document.pages.map(({ number, anchor, read }) => [number, anchor, read])).toEqual(
      Array.from({ length: smallBook.pages }, (_, index) => [index + 1, `page-${index + 1}`, true]),
    );
    expect((await books.book(small)).metadata_result).toMatchObject({ author: 'Ada Waker', publisher: 'Tower Press' });
    expect((await books.book(small)).review_result).toBeNull();
  });

  test('is read by the text layer, by OCR, and by both', async () => {
    await books.settled(small);
    const pages = await books.rows<{ number: number; readings: string[]; text: string }>(
      `select number, blend_result -> 'readings' as readings, blend_result ->> 'text' as text from public.pages where book_id = $1 order by number`,
      [small],
    );
    const other = pages.filter(({ number }) => number !== smallBook.scan && number !== smallBook.bothReadings);
    for (const { readings } of other) expect(readings).toEqual(['text_layer']);
    expect(pages[smallBook.scan - 1]?.readings).toEqual(['ocr']);
    expect([...(pages[smallBook.bothReadings - 1]?.readings ?? [])].sort()).toEqual(['ocr', 'text_layer']);
    for (const number of [smallBook.scan, smallBook.bothReadings]) {
      const words = pageRows(number).flatMap(({ text }) => text.split(' '));
      const read = new Set(pages[number - 1]?.text.split(/\s+/));
      expect(words.filter((word) => read.has(word)).length / words.length).toBeGreaterThan(0.9);
    }
  });

  test('of fewer pages than a threshold asks for passes it when all of them are blended', async () => {
    await books.settled(small);
    const blended = (await books.attempts(small, 'pages')).filter(({ stage }) => stage === 'blend');
    const last = Math.max(...blended.map(({ finished_at }) => finished_at.getTime()));
    const attempts = await books.attempts(small, 'books');
    for (const stage of ['metadata', 'toc']) {
      expect(attempts.filter((attempt) => attempt.stage === stage)).toHaveLength(1);
      expect(when(attempts, stage).created_at.getTime()).toBeGreaterThanOrEqual(last);
    }
  });
});

describe('the stages of a longer book', () => {
  test('begin in the order that thresholds and joins ask for, each once', async () => {
    expect(await books.settled(long)).toBe('completed');
    const attempts = await books.attempts(long, 'books');
    expect(attempts.map(({ stage, state }) => `${stage} ${state}`).sort()).toEqual([
      'assemble completed',
      'headings completed',
      'metadata completed',
      'page_numbers completed',
      'review skipped',
      'split completed',
      'structure completed',
      'toc completed',
    ]);
    const pages = await books.attempts(long, 'pages');
    const ends = (stage: string) =>
      pages
        .filter((page) => page.stage === stage)
        .map(({ number, finished_at }) => [number as number, finished_at.getTime()] as const);
    const blended = ends('blend');
    const begun = (stage: string) => when(attempts, stage).created_at.getTime();
    const ended = (stage: string) => when(attempts, stage).finished_at.getTime();
    for (const stage of ['metadata', 'toc'] as const) {
      const awaited = blended.filter(([number]) => number <= firstPages[stage]);
      expect(begun(stage)).toBeGreaterThanOrEqual(Math.max(...awaited.map(([, at]) => at)));
    }
    const labelled = Math.max(...ends('label').map(([, at]) => at));
    for (const stage of ['page_numbers', 'headings']) expect(begun(stage)).toBeGreaterThanOrEqual(labelled);
    // Side by side: neither waits for the other.
    expect(Math.abs(begun('headings') - begun('page_numbers'))).toBeLessThan(1000);
    for (const need of ['metadata', 'toc', 'page_numbers', 'headings']) {
      expect(begun('structure')).toBeGreaterThanOrEqual(ended(need));
    }
    expect(begun('assemble')).toBeGreaterThanOrEqual(ended('structure'));
  });

  test('find its table of contents in a child run, with the file’s own outline beside it', async () => {
    await books.settled(long);
    const contents = await books.attempts(long, 'toc');
    const own = contents.filter(({ stage }) => stage !== 'outline');
    expect(own.map(({ stage, state }) => `${stage} ${state}`)).toEqual([
      'find completed',
      'extract completed',
      'link completed',
    ]);
    expect(when(contents, 'outline')).toMatchObject({ state: 'completed' });
    const [turns] = await books.rows(
      `select count(*) filter (where t.kind = 'tool')::int as calls from millrace.turns t join millrace.runs r on r.id = t.run_id where r.entity_id = $1`,
      [long],
    );
    expect(turns?.calls).toBeGreaterThan(0);
    const { structure_result: structure } = await books.book(long);
    expect(structure).toMatchObject({ unplaced: [] });
    expect((structure as { confidence: number }).confidence).toBeGreaterThan(0.9);
    expect((structure as { outline: unknown[] }).outline[1]).toMatchObject({
      title: '1 Where a Clock Should Stand',
      page: 6,
      label: '1',
      sources: ['contents', 'headings'],
    });
  });
});

describe('a book whose outline is uncertain', () => {
  test('waits for a person of its own account, and goes on as that person says', async () => {
    expect(await books.settled(unsure)).toBe('waiting for a person');
    const mine = await alice.rows.from('millrace_decisions').select('attempt_id, stage').eq('entity_id', unsure);
    expect(mine.data).toHaveLength(1);
    const attempt = mine.data?.[0]?.attempt_id;
    const asked = await bob.rows.from('millrace_decisions').select('attempt_id');
    expect(asked.data).toEqual([]);
    const malformed = await bob.rows.rpc('millrace_decide', { p_attempt: attempt, p_decision: { keep: 'all' } });
    expect(malformed.error?.code).toBe('MR003');
    const wrong = await alice.rows.rpc('millrace_decide', { p_attempt: attempt, p_decision: { keep: 'most' } });
    expect(wrong.error?.message).toContain('decision.keep');
    const decision = { keep: 'headings', note: 'they are right' };
    const decided = await alice.rows.rpc('millrace_decide', { p_attempt: attempt, p_decision: decision });
    expect(decided.error).toBeNull();
    expect(await books.settled(unsure)).toBe('completed');
    expect(await documentOf(unsure)).toMatchObject({ outline_reviewed: true });
  });
});

describe('another account', () => {
  test('sees neither book nor pages, neither file nor document', async () => {
    await books.settled(small);
    for (const table of ['books', 'pages', 'book_pipeline_status']) {
      expect((await bob.rows.from(table).select('id')).data).toEqual([]);
    }
    const { path } = (await books.book(small)).assemble_result as { path: string };
    for (const file of [path, `${alice.account}/${small}.pdf`]) {
      expect((await bob.storage.from('books').download(file)).error).not.toBeNull();
      expect((await alice.storage.from('books').download(file)).error).toBeNull();
    }
    const { error } = await bob.storage.from('books').upload(`${alice.account}/x.pdf`, new Blob(['x']));
    expect(error).not.toBeNull();
  });

  test('cannot have a file of somebody else’s read', async () => {
    const stolen = (source_path: string) =>
      bob.rows.from('books').insert({ account_id: bob.account, title: 'stolen', source_path });
    for (const path of [`${alice.account}/${small}.pdf`, `${bob.account}/../${alice.account}/${small}.pdf`]) {
      expect((await stolen(path)).error?.message).toContain('books_source_in_own_folder');
    }
    const foreign = await bob.rows
      .from('books')
      .insert({ account_id: alice.account, title: 'foreign', source_path: `${alice.account}/x.pdf` });
    expect(foreign.error?.code).toBe('42501');
  });

  test('cannot write a result, nor start a book that is not its own', async () => {
    await bob.rows.from('books').update({ split_status: 'queued' }).eq('id', small);
    expect((await books.book(small)).split_status).toBe('completed');
    const written = await alice.rows.from('books').update({ structure_result: {} }).eq('id', small);
    expect(written.error?.code).toBe('42501');
  });
});

describe('a file that is no book', () => {
  test.each<[string, () => Promise<{ bytes: Uint8Array | string; mediaType?: string; claimed?: string }>]>([
    ['empty_document', async () => ({ bytes: '' })],
    ['encrypted_document', async () => ({ bytes: await lockedPdf() })],
    ['damaged_document', async () => ({ bytes: (await smallBookPdf()).subarray(0, 20_000) })],
    [
      'mislabelled_document',
      async () => ({ bytes: 'Words, and nothing but.', mediaType: 'text/plain', claimed: 'application/pdf' }),
    ],
    ['unsupported_type', async () => ({ bytes: Buffer.from('504b0304140000000800', 'hex') })],
    ['no_pages', async () => ({ bytes: ' \n\f\n ', mediaType: 'text/plain' })],
  ])('fails for good with %s, which says what to do', async (code, make) => {
    const id = await submitBook(alice, await make());
    expect(await books.settled(id)).toBe('failed');
    const attempts = await books.attempts(id, 'books');
    expect(attempts).toHaveLength(1);
    expect(attempts[0]).toMatchObject({ stage: 'split', state: 'failed', error_code: code });
    expect(attempts[0]?.error_message).toMatch(/: (upload|correct)/);
    expect((await books.book(id)).current_error).toContain(attempts[0]?.error_message);
  });

  test('fails with file_not_found while it is missing, and runs once it is there', async () => {
    const id = randomUUID();
    const path = `${alice.account}/${id}.txt`;
    const row = { id, account_id: alice.account, title: 'late', source_path: path, media_type: 'text/plain' };
    expect((await alice.rows.from('books').insert(row)).error).toBeNull();
    await queueBook(alice.rows, id);
    expect(await books.settled(id)).toBe('failed');
    expect((await books.attempts(id, 'books'))[0]?.error_code).toBe('file_not_found');
    const text = new Blob(['One page of text.'], { type: 'text/plain' });
    expect((await alice.storage.from('books').upload(path, text, { contentType: 'text/plain' })).error).toBeNull();
    await queueBook(alice.rows, id);
    expect(await books.settled(id)).toBe('waiting for a person');
  });
});
