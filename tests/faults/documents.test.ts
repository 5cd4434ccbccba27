import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { MAX_PDF_PAGES } from '../../supabase/functions/_services/pdf/pdf-text.ts';
import { textPdf } from '../support/examples/documents.ts';
import { rawPdf } from '../support/examples/raw-pdf.ts';
import { type Fate, gate } from '../support/faults/fault-proxy.ts';
import {
  type Caller,
  DocumentsStack,
  logbookOf,
  queueDocument,
  submitDocument,
} from '../support/stack/documents-stack.ts';

const text = [
  '# Northern Light',
  'The Lamp Office keeps the Northern Light on Skerry Island. The Northern Light was built by the Pilot Board in the year after the great wreck, of stone that was brought across the ice on sledges, and its lamp is seen from farther out than that of any other light on the coast.',
  logbookOf('northern light'),
  '# Southern Light',
  'The Harbour Watch keeps the Southern Light. The Pilot Board pays the Harbour Watch in coal and flour as well as in money, since the boat that brings the money comes only when the wind lets it, and the winter before last it did not come at all between the first and the last frost.',
  logbookOf('southern light'),
].join('\n\n');

let documents: DocumentsStack;
let user: Caller;
beforeAll(async () => {
  documents = await DocumentsStack.start({ proxy: true });
  await documents.takeClock();
  user = await documents.user();
});
beforeEach(() => documents.rows('update public.document_way set share = 1'));
afterEach(async () => {
  documents.proxy.decide = () => 'pass';
  await documents.expectSound();
});
afterAll(() => documents.stop());

/** Holds the first call of the functions that `matches` until it may pass, or is lost; `arrived` says that it is there. */
function holdFirst(matches: (path: string, body: string) => boolean) {
  const api = gate();
  const arrival = gate();
  let fate: Fate = 'pass';
  let held = false;
  documents.proxy.decide = async ({ path, body }) => {
    if (held || !matches(path, body)) return 'pass';
    held = true;
    arrival.open();
    await api.passed;
    return fate;
  };
  const lose = () => {
    fate = { status: 503, json: {} };
    api.open();
  };
  return { arrived: arrival.passed, open: api.open, lose };
}

const completion = (of: string) => (path: string, body: string) =>
  path.endsWith('/rpc/millrace_complete') && body.includes('"completed"') && body.includes(of);

test.each([
  ['extraction', 'documents-extraction', 'text_location'],
  ['chunking', 'documents-chunking', 'output_location'],
])(
  '%s that is killed between its writing and its completion is done once more, to the same end',
  async (phase, name, field) => {
    const held = holdFirst(completion(field));
    const id = await submitDocument(user, { name: 'lights.md', bytes: text });
    await held.arrived;
    await documents.stack.functions.kill(name);
    expect((await documents.document(id))[`${phase}_status`]).toBe('started');
    expect(await documents.value('select count(*) from public.chunk where document_id = $1', [id])).toBe('0');
    held.lose();
    // The lease first, then the pause before the retry.
    for (const time of ['2 minutes', '10 seconds']) {
      await documents.advance(time);
      await documents.sweep();
    }
    expect(await documents.settled(id)).toBe('completed');
    const lines = (await documents.phases(id)).filter((line) => line.startsWith(phase));
    expect(lines).toEqual([`${phase} failed lost_lease`, `${phase} completed`]);
    const links = await documents.rows(
      'select id, parent_phase_id from public.pipeline_phase where pipeline_job_id = $1 and phase = $2 order by attempt_id',
      [id, phase],
    );
    expect(links[1]?.parent_phase_id).toBe(links[0]?.id);
    expect(await documents.value('select count(*) from public.chunk where document_id = $1', [id])).toBe('2');
    expect(await documents.value('select count(*) from public.chunk_draft where document_id = $1', [id])).toBe('0');
  },
);

test.each([
  ['extraction', 'text_location'],
  ['chunking', 'output_location'],
  ['kg_ingest', 'relations'],
])('a document deleted during %s takes its runs along, and its function goes on with others', async (_, field) => {
  const held = holdFirst(completion(field));
  const id = await submitDocument(user, { name: 'lights.md', bytes: text });
  await held.arrived;
  const deleted = await user.rows.from('document').delete().eq('id', id);
  expect(deleted.error?.message).toBeUndefined();
  held.open();
  const next = await submitDocument(user, { name: 'lights.md', bytes: text });
  expect(await documents.settled(next, () => documents.sweep())).toBe('completed');
  expect(await documents.value('select count(*) from millrace.runs where entity_id = $1', [id])).toBe('0');
  expect(await documents.value('select count(*) from public.chunk where document_id = $1', [id])).toBe('0');
});

test('while the flag is turned, what is under way ends the way it began', async () => {
  await documents.rows('update public.document_way set share = 0');
  const held = holdFirst(completion('facts'));
  const old = await submitDocument(user, { name: 'lights.md', bytes: text });
  await held.arrived;
  await documents.rows('update public.document_way set share = 1');
  const fresh = await submitDocument(user, { name: 'lights.md', bytes: text });
  expect(await documents.settled(fresh)).toBe('completed');
  held.open();
  expect(await documents.settled(old)).toBe('completed');
  expect(await documents.phases(old)).toEqual(['monolith completed']);
  expect(await documents.phases(fresh)).toEqual(['extraction completed', 'chunking completed', 'kg_ingest completed']);
  const [one, other] = [await documents.graph(old), await documents.graph(fresh)];
  const texts = (graph: typeof one) => (graph.chunks as { text: string }[]).map((chunk) => chunk.text);
  expect(texts(one)).toEqual(texts(other));
  const report = await documents.rows('select pipeline from public.document_ways order by pipeline');
  expect(report.map(({ pipeline }) => pipeline)).toEqual(['document_monolith', 'documents']);
  await queueDocument(user, old);
  expect(await documents.settled(old)).toBe('completed');
  expect((await documents.document(old)).extraction_status).toBe('completed');
});

test.runIf(process.env.SOAK)(
  'a heavy file that ends its function costs none of the files beside it an attempt',
  async () => {
    const heavy = await submitDocument(user, { name: 'heavy.pdf', bytes: beyondAnyFunction() });
    const others = await Promise.all(
      ['a.md', 'b.md', 'c.md'].map((name) => submitDocument(user, { name, bytes: text })),
    );
    const lateLeases = async () => {
      await documents.advance('2 minutes');
      await documents.sweep();
    };
    for (const id of others) expect(await documents.settled(id, () => documents.sweep())).toBe('completed');
    expect(await documents.settled(heavy, lateLeases)).toBe('failed');
    for (const id of others)
      expect(await documents.phases(id)).toEqual(['extraction completed', 'chunking completed', 'kg_ingest completed']);
    expect((await documents.phases(heavy)).at(-1)).toBe('extraction failed resource_limit');
  },
);

test('a PDF that is longer than one call reads is read by one attempt, and its chunks lie in all of its text', async () => {
  const pages = 2 * MAX_PDF_PAGES + 1;
  const line = (page: number) => ({
    text: `Page ${page}: the keeper wrote down the wind and the tide.`,
    x: 60,
    y: 60,
    size: 11,
  });
  const bytes = await textPdf(...Array.from({ length: pages }, (_, at) => [line(at + 1)]));
  const id = await submitDocument(user, { name: 'logbook.pdf', bytes });
  expect(await documents.settled(id, () => documents.sweep())).toBe('completed');
  expect(await documents.phases(id)).toEqual(['extraction completed', 'chunking completed', 'kg_ingest completed']);
  expect(await documents.document(id)).toMatchObject({ reading: 'whole', extraction_result: { pages } });
  const { chunks } = (await documents.graph(id)) as { chunks: { text: string; page: number }[] };
  const words = chunks.map(({ text }) => text).join(' ');
  for (let page = 1; page <= pages; page++) expect(words).toContain(`Page ${page}: the keeper`);
  expect(chunks.at(-1)?.page).toBeGreaterThan(2 * MAX_PDF_PAGES - 40);
});

/** A page of more words than can be read in one call, in a file that is as large as it is heavy. */
function beyondAnyFunction(): Uint8Array {
  const font = '<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>';
  return rawPdf(`BT /F1 9 Tf 9 9 Td ${'(tide) Tj '.repeat(1_200_000)} ET`, { F1: 6 }, [font]);
}
