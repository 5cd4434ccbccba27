// Manuals in the set-ups of several programs go through the stages that read their contents, without a stack.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Service } from '../../local/services/http/listen.ts';
import { startModel } from '../../local/services/model/server.ts';
import { PageReaders } from '../../local/services/ocr/page-readers.ts';
import { callHandler } from '../../packages/test/index.ts';
import { blendReadings } from '../../supabase/functions/_books/blend-readings.ts';
import { proposeLabels } from '../../supabase/functions/_books/page-layout.ts';
import type { PageRow } from '../../supabase/functions/_books/page-rows.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import type { PageLine } from '../../supabase/functions/_pipelines/pages-results.ts';
import { type LinkResult, linkResult } from '../../supabase/functions/_pipelines/toc-results.ts';
import { openPdf } from '../../supabase/functions/_services/pdf/pdf.ts';
import { headings } from '../../supabase/functions/books-headings/handler.ts';
import { pageNumbers } from '../../supabase/functions/books-page-numbers/handler.ts';
import { structure } from '../../supabase/functions/books-structure/handler.ts';
import { readingOfJob } from '../../supabase/functions/pages-ocr/handler.ts';
import { extract } from '../../supabase/functions/toc-extract/handler.ts';
import { bookTools } from '../../supabase/functions/toc-find/tools.ts';
import { link } from '../../supabase/functions/toc-link/handler.ts';
import { outline } from '../../supabase/functions/toc-outline/handler.ts';
import { printedIn, setUps } from '../support/examples/manual-set-ups.ts';
import { startProject } from '../support/examples/project-server.ts';
import { type Manual, type SetUp, setManual } from '../support/examples/set-manual.ts';

let model: Service;
const readers = new PageReaders(60_000);
beforeAll(async () => {
  model = await startModel({ env: {}, delayMs: 0 });
});
afterAll(async () => {
  await Promise.all([model.stop(), readers.stop()]);
});

/** Everything that came of a manual's contents. */
interface Outcome {
  manual: Manual;
  found: { first: number; last: number };
  link: LinkResult;
  confidence: number;
}

async function resultOf<T>(stage: Stage, needs: Record<string, unknown>, env: Env, id: string): Promise<T> {
  const settings = { ...env, LLM_URL: model.url, LLM_MODEL: 'local', LLM_MODE: 'inline' };
  const called = await callHandler(stage, { row: { id }, needs, env: settings });
  expect(called).toMatchObject({ outcome: 'completed', result: {} });
  return called.result;
}

/** The pages as the stages before leave them, labelled by layout alone. */
async function rowsOf({ bytes }: Manual, scanned: boolean): Promise<PageRow[]> {
  const pdf = await openPdf(bytes.slice());
  const rows: PageRow[] = [];
  const pictures = scanned ? await readPictures(bytes, pdf.pageCount) : [];
  for (let number = 1; number <= pdf.pageCount; number++) {
    const reading = scanned
      ? readingOfJob({ job_id: 'j', status: 'completed', result: pictures[number - 1] })
      : { by: 'text_layer' as const, confidence: 1, lines: (await pdf.pageText(number)).lines };
    const blend = blendReadings([reading]);
    rows.push({ number, blend_result: blend, label_result: proposeLabels(blend.lines, scanned) });
  }
  await pdf.close();
  return rows;
}

/** One page after the other, so that one reader does it all: to start another takes as long as it takes to read some pages. */
async function readPictures(bytes: Uint8Array, count: number): Promise<unknown[]> {
  const { signal } = new AbortController();
  const read: unknown[] = [];
  for (let page = 1; page <= count; page++) read.push(await readers.read({ bytes, page }, signal));
  return read;
}

const made = new Map<SetUp, { manual: Manual; rows: PageRow[] }>();

/** A set-up's manual and its pages, which all tests of it share. */
async function madeOf(setUp: SetUp): Promise<{ manual: Manual; rows: PageRow[] }> {
  const known = made.get(setUp);
  if (known) return known;
  const manual = await setManual(setUp);
  const fresh = { manual, rows: await rowsOf(manual, setUp.scanned ?? false) };
  made.set(setUp, fresh);
  return fresh;
}

/** The answers of the agent's tool about the pages, wherever it looks. */
async function lookedAt(env: Env, id: string): Promise<{ first: number; last: number }> {
  const [look] = bookTools(id);
  const call = { env, signal: new AbortController().signal, idempotencyKey: 'k' };
  const [, first, last] =
    /first contents page: (\d+)\nlast contents page: (\d+)/.exec(
      String(await look?.run({ first_page: 9, last_page: 10 }, call)),
    ) ?? [];
  return { first: Number(first), last: Number(last) };
}

async function read(
  setUp: SetUp,
  spoil: (rows: PageRow[], manual: Manual) => PageRow[] = (rows) => rows,
): Promise<Outcome> {
  const { manual, rows } = await madeOf(setUp);
  const pages = spoil(structuredClone(rows), manual);
  const id = `manual ${setUp.name} ${Math.random()}`;
  const { env } = await startProject({
    pages,
    books: [{ id, account_id: 'a', source_path: 'a/m.pdf', media_type: 'application/pdf' }],
    files: { 'a/m.pdf': manual.bytes },
  });
  const found = await lookedAt(env, id);
  const find = { first_contents_page: found.first, last_contents_page: found.last };
  const extracted = await resultOf(extract, { find }, env, id);
  const linked = linkResult.parse(await resultOf(link, { find, extract: extracted }, env, id));
  const needs = {
    metadata: null,
    toc: { link: linked, outline: await resultOf(outline, {}, env, id) },
    page_numbers: await resultOf(pageNumbers, {}, env, id),
    headings: await resultOf(headings, {}, env, id),
  };
  const { confidence } = await resultOf<{ confidence: number }>(structure, needs, env, id);
  return { manual, found, link: linked, confidence };
}

const letters = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');

/** Precision and recall of entries by title, printed page and page. */
function measure(setUp: SetUp, { manual, link }: Outcome) {
  const key = (title: string, printed: string, page: number | null) => `${letters(title)} ${printed} ${page}`;
  const wanted = manual.entries.map(({ title, printed_page, page }) =>
    key(title, printedIn(setUp, printed_page), page),
  );
  const got = link.entries.map(({ title, printed_page, page }) => key(title, printed_page, page));
  return {
    precision: got.filter((entry) => wanted.includes(entry)).length / got.length,
    recall: wanted.filter((entry) => got.includes(entry)).length / wanted.length,
  };
}

type Spoil = (rows: PageRow[], contents: Manual['contents']) => PageRow[];

/** The rows with other lines on the pages of the contents. */
function withLines(change: (lines: PageLine[], page: number, contents: Manual['contents']) => PageLine[]): Spoil {
  return (rows, contents) =>
    rows.map((row) => {
      const isContents = row.number >= contents.first && row.number <= contents.last;
      if (!row.blend_result || !isContents) return row;
      const lines = change(row.blend_result.lines, row.number, contents);
      return { ...row, blend_result: { ...row.blend_result, lines, text: lines.map(({ text }) => text).join('\n') } };
    });
}

const isEntry = ({ text }: PageLine) => /\d$/.test(text) && !/^Page|\//.test(text);
const withText = (line: PageLine, text: string) => ({ ...line, text });

const spoils: [string, Spoil][] = [
  ['every fourth entry was not read', withLines((lines) => lines.filter((line, at) => at % 4 !== 2 || !isEntry(line)))],
  ['the last page of them was not read', withLines((lines, page, { last }) => (page === last ? [] : lines))],
  [
    'every fifth title was read as another',
    withLines((lines) =>
      lines.map((line, at) => (at % 5 === 3 ? withText(line, line.text.replace(/\p{L}{3,}/gu, 'word')) : line)),
    ),
  ],
  [
    'page numbers were read as larger ones',
    withLines((lines) =>
      lines.map((line) =>
        isEntry(line)
          ? withText(
              line,
              line.text.replace(/\d+$/, (n) => `${Number(n) + 5}`),
            )
          : line,
      ),
    ),
  ],
];

/** The rows with other lines on up to fifteen pages of the text, whose labels follow. */
function withTextLines(change: (lines: PageLine[], at: number) => PageLine[]): Spoil {
  return (rows, contents) => {
    const text = rows.filter(({ number }) => number > contents.last + 1).slice(0, 15);
    return rows.map((row) => {
      const at = text.indexOf(row);
      if (!row.blend_result || at < 0) return row;
      const lines = change(row.blend_result.lines, at);
      const blend = { ...row.blend_result, lines, text: lines.map((line) => line.text).join('\n') };
      return { ...row, blend_result: blend, label_result: proposeLabels(lines, false) };
    });
  };
}

const noises = ['I1l ~ rn |: a', 'Rn iii l oo', '4B §e »tl ]j', 'Tbc ijl prcfs hwrlg', 'II :. ,1 =~ Vv'];
/** Letters a little larger than the text's, as no listed heading has them. */
const large = 11.6;

const junk: [string, Spoil][] = [
  [
    'specks were read as headings',
    withTextLines((lines, at) => {
      const y = (lines.at(-1)?.y ?? 0) + 30;
      return [
        ...lines,
        { text: `${noises[at % noises.length]} ${'abcdefghijklmno'.charAt(at)}`, size: large, x: 50, y },
      ];
    }),
  ],
  [
    'running text was taken for headings',
    withTextLines((lines) => {
      const at = lines.findIndex(
        ({ text }, index) => /^\p{Lu}\p{Ll}.*\p{L}$/u.test(text) && /^\p{Ll}/u.test(lines[index + 1]?.text ?? ''),
      );
      return lines.map((line, index) => (index === at ? { ...line, size: large } : line));
    }),
  ],
];

/** As the pipeline has it: below this confidence a person is asked. */
const reviewedBelow = 0.97;

describe('the contents of a manual', () => {
  test.each(setUps)(
    'from $name are found, read and led to pages, nearly all and hardly anything else',
    async (setUp) => {
      const outcome = await read(setUp);
      expect(outcome.found).toEqual(outcome.manual.contents);
      const { precision, recall } = measure(setUp, outcome);
      expect(precision).toBeGreaterThanOrEqual(0.95);
      expect(recall).toBeGreaterThanOrEqual(0.95);
      // Nobody need be asked about what is right.
      expect(outcome.confidence).toBeGreaterThanOrEqual(reviewedBelow);
    },
  );

  const spoiltSetUps = setUps.filter(({ name }) => /book|word processor|DocBook/.test(name));
  const cases = spoiltSetUps.flatMap((setUp) =>
    spoils.map(([what, spoil]) => ({ name: setUp.name, what, setUp, spoil })),
  );
  test.each(cases)('from $name are looked at by a person where $what', async ({ setUp, spoil }) => {
    const outcome = await read(setUp, (rows, manual) => spoil(rows, manual.contents));
    const { precision, recall } = measure(setUp, outcome);
    expect(Math.min(precision, recall)).toBeLessThan(0.95);
    expect(outcome.confidence).toBeLessThan(reviewedBelow);
  });

  const junkCases = spoiltSetUps.flatMap((setUp) =>
    junk.map(([what, spoil]) => ({ name: setUp.name, what, setUp, spoil })),
  );
  test.each(junkCases)(
    'from $name are right, and looked at by a person all the same where $what',
    async ({ setUp, spoil }) => {
      const outcome = await read(setUp, (rows, manual) => spoil(rows, manual.contents));
      const { precision, recall } = measure(setUp, outcome);
      expect(Math.min(precision, recall)).toBeGreaterThanOrEqual(0.95);
      expect(outcome.confidence).toBeLessThan(reviewedBelow);
    },
  );
});
