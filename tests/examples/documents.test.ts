import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sampleDocuments } from '../../local/demo/samples/documents/sample-documents.ts';
import { projectFolder } from '../cli/run-command.ts';
import { compiled, definitionOf } from '../support/definitions.ts';
import type { Row } from '../support/engine.ts';
import { lockedPdf } from '../support/examples/documents.ts';
import {
  addDocument,
  type Caller,
  DocumentsStack,
  logbookOf,
  queueDocument,
  submitDocument,
  type Upload,
} from '../support/stack/documents-stack.ts';

let documents: DocumentsStack;
let alice: Caller;
let bob: Caller;
const ids: Record<string, string> = {};

const harbour: Upload = {
  name: 'harbour.md',
  platform: 'notion',
  bytes: [
    '# The Old Harbour',
    'The Ropeyard Guild founded the Harbour Trust in Malmby. The Harbour Trust restores wooden boats, and has done so every winter since the ropeyard on the north quay was empty. Visitors may watch from the gallery above the slip on any day that is not a holiday.',
    logbookOf('slip'),
    '## The boats',
    'The Salt Company sails the Silver Gull. The Silver Gull was built in Malmby by the Ropeyard Guild, of oak that had lain in the mill pond for seven years. She carries salt and timber in summer, and in the dark months she lies beside the customs house with her masts down.',
    logbookOf('customs house'),
  ].join('\n\n'),
};

beforeAll(async () => {
  documents = await DocumentsStack.start({ env: { LLM_PRICE_INPUT: '1', LLM_PRICE_OUTPUT: '2' } });
  [alice, bob] = await Promise.all([documents.user(), documents.user()]);
  for (const { name, bytes, mediaType } of await sampleDocuments()) {
    ids[name] = await submitDocument(alice, { name, bytes, mediaType, platform: 'google_drive' });
  }
  ids.harbour = await submitDocument(bob, harbour);
});
afterEach(() => documents.expectSound());
afterAll(() => documents.stop());

describe('a file of each kind', () => {
  test('becomes text, chunks and facts', async () => {
    for (const [name, id] of Object.entries(ids)) {
      expect({ name, status: await documents.settled(id) }).toEqual({ name, status: 'completed' });
      const { chunks, mentions, facts } = await documents.graph(id);
      expect({ name, chunks: (chunks as Row[]).length > 0 }).toEqual({ name, chunks: true });
      expect({ name, mentions: (mentions as Row[]).length > 0, facts: facts !== undefined }).toMatchObject({
        mentions: true,
      });
    }
    const by = await documents.rows(`select distinct extraction_result ->> 'by' as by from public.document order by 1`);
    expect(by.map((row) => row.by)).toEqual(['docx', 'html', 'markdown', 'ocr', 'pdf', 'transcription']);
  });

  test('has its chunks where they say', async () => {
    await documents.settled(ids.harbour as string);
    const { text_location: location } = (await documents.document(ids.harbour as string)).extraction_result as Row;
    const stored = await documents.project.storage
      .from('extracted_text')
      .download(String(location).split('/')[1] as string);
    const text = (await stored.data?.text()) as string;
    const { chunks } = (await documents.graph(ids.harbour as string)) as { chunks: Row[] };
    for (const chunk of chunks) {
      expect(text.slice(chunk.start_offset as number, chunk.end_offset as number)).toBe(chunk.text);
    }
    expect(chunks.map(({ heading }) => heading)).toContain('The Old Harbour > The boats');
  });
});

describe('evidence and summary', () => {
  test('a job for each document, a phase for each attempt, with locations and cost', async () => {
    const id = ids.harbour as string;
    await documents.settled(id);
    const job = await documents.job(id);
    expect(job).toMatchObject({
      current_phase: 'completed',
      status: 'completed',
      metadata: { source_name: 'harbour.md', source_platform: 'notion', clerk_org_id: bob.org },
    });
    const phases = await documents.rows(
      'select * from public.pipeline_phase where pipeline_job_id = $1 order by attempt_id',
      [job.id],
    );
    const text = `extracted_text/${id}.txt`;
    const chunks = `chunk?document_id=eq.${id}`;
    expect(phases).toMatchObject([
      {
        phase: 'extraction',
        status: 'completed',
        input_location: `documents/${bob.org}/${id}/harbour.md`,
        output_location: text,
      },
      { phase: 'chunking', status: 'completed', input_location: text, output_location: chunks },
      { phase: 'kg_ingest', status: 'completed', input_location: chunks },
    ]);
    const { total_cost_usd: total, cost_usd: costs } = job.metadata as { total_cost_usd: number; cost_usd: Row };
    expect(total).toBeGreaterThan(0);
    expect(costs).toEqual({ kg_ingest: total });
    expect(((phases[2] as Row).metadata as Row).cost).toBe(total);
  });

  test('a user who sees the document sees its job, phases and costs, and nobody else does', async () => {
    for (const id of Object.values(ids)) await documents.settled(id);
    const seen = async ({ rows }: Caller, view: string, column: string) =>
      [...new Set((await rows.from(view).select(column)).data?.map((row) => (row as unknown as Row)[column]))].sort();
    const own = Object.values(ids)
      .filter((id) => id !== ids.harbour)
      .sort();
    for (const [view, column] of [
      ['pipeline_job', 'document_id'],
      ['pipeline_phase', 'pipeline_job_id'],
    ] as const) {
      expect(await seen(alice, view, column)).toEqual(own);
      expect(await seen(bob, view, column)).toEqual([ids.harbour]);
    }
    const costs = await alice.rows.from('document_costs').select('*');
    expect(costs.data).toEqual([
      {
        clerk_org_id: alice.org,
        source_platform: 'google_drive',
        documents: own.length,
        completed: own.length,
        cost_usd: expect.any(Number),
      },
    ]);
    expect(
      (await alice.rows.schema('millrace_evidence').rpc('document_job', { p_document_id: ids.harbour })).error,
    ).not.toBeNull();
  });
});

describe('once more', () => {
  test.each([
    ['extraction', 3],
    ['chunking', 2],
    ['kg_ingest', 1],
  ])('from %s on brings the same chunks and facts', async (phase, again) => {
    const id = ids.harbour as string;
    await documents.settled(id);
    const before = await documents.graph(id);
    const { run_id: former, metadata: paid } = await documents.job(id);
    const attempts = (await documents.phases(id)).length;
    await queueDocument(bob, id, phase);
    expect((await documents.job(id)).run_id).not.toBe(former);
    expect(await documents.settled(id)).toBe('completed');
    expect(await documents.graph(id)).toEqual(before);
    // A result that the run took over is no attempt, and what was paid before counts.
    expect(await documents.phases(id)).toHaveLength(attempts + again);
    const { metadata } = await documents.job(id);
    expect((metadata as Row).total_cost_usd).toBeGreaterThan((paid as { total_cost_usd: number }).total_cost_usd);
  });

  test('uploaded a second time it has chunks of its own, but no entity twice', async () => {
    await documents.settled(ids.harbour as string);
    const entities = await documents.value('select count(*) from public.kg_entity where clerk_org_id = $1', [bob.org]);
    const id = await submitDocument(bob, harbour);
    expect(await documents.settled(id)).toBe('completed');
    expect(await documents.value('select count(*) from public.kg_entity where clerk_org_id = $1', [bob.org])).toBe(
      entities,
    );
    const shared = await documents.value(
      'select count(*) from public.chunk a join public.chunk b using (id) where a.document_id = $1 and b.document_id = $2',
      [id, ids.harbour],
    );
    expect(shared).toBe('0');
  });

  test('with another text the chunks that are the same stay, and what is gone goes', async () => {
    const carol = await documents.user();
    const id = await submitDocument(carol, harbour);
    await documents.settled(id);
    const { source_path: path } = await documents.document(id);
    const edited = String(harbour.bytes).replace(
      /## The boats[\s\S]*/,
      `## The ferry\n\nThe Salt Company runs the ferry Blue Heron. She crosses six times a day. ${logbookOf('ferry')}`,
    );
    const replaced = await carol.storage.from('documents').upload(path as string, new Blob([edited]), { upsert: true });
    expect(replaced.error).toBeNull();
    const before = (await documents.graph(id)).chunks as Row[];
    await queueDocument(carol, id);
    expect(await documents.settled(id)).toBe('completed');
    const after = (await documents.graph(id)).chunks as Row[];
    expect(after.map(({ heading }) => heading)).toEqual(['The Old Harbour', 'The Old Harbour > The ferry']);
    expect(after[0]?.id).toBe(before[0]?.id);
    expect(before.map((chunk) => chunk.id)).not.toContain(after[1]?.id);
    const known = await carol.rows.from('kg_entity').select('name');
    expect(known.data?.map(({ name }) => name)).not.toContain('Silver Gull');
  });
});

test('a file that nobody can read fails for good with the reason, and once', async () => {
  const dave = await documents.user();
  const broken: [Upload, string][] = [
    [{ name: 'empty.pdf', bytes: '' }, 'empty_document'],
    [{ name: 'locked.pdf', bytes: await lockedPdf() }, 'encrypted_document'],
    [{ name: 'truncated.pdf', bytes: (await samplePdf()).subarray(0, 2000) }, 'damaged_document'],
    [
      { name: 'program.docx', bytes: Uint8Array.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0]) },
      'unsupported_type',
    ],
    [{ name: 'blank.txt', bytes: ' \n\n ' }, 'no_text'],
  ];
  const submitted = await Promise.all(broken.map(([upload]) => submitDocument(dave, upload)));
  const missing = await addDocument(dave, { name: 'gone.md', bytes: '# Here today' });
  const { source_path: path } = await documents.document(missing);
  await dave.storage.from('documents').remove([path as string]);
  await queueDocument(dave, missing);
  const expected = [...broken.map(([, code]) => code), 'file_not_found'];
  for (const [index, id] of [...submitted, missing].entries()) {
    expect(await documents.settled(id)).toBe('failed');
    expect(await documents.phases(id)).toEqual([`extraction failed ${expected[index]}`]);
    expect((await documents.job(id)).current_phase).toBe('extraction');
    expect((await documents.document(id)).extraction_error).toBeTruthy();
  }
});

test('a file is what its bytes say, whatever it is called', async () => {
  const id = await submitDocument(await documents.user(), {
    name: 'notes.txt',
    mediaType: 'text/plain',
    bytes: await samplePdf(),
  });
  expect(await documents.settled(id)).toBe('completed');
  expect((await documents.document(id)).extraction_result).toMatchObject({ by: 'pdf', media_type: 'application/pdf' });
});

/** A copy of the project's functions in which these stages are on a worker, each by one word in its definition. */
function movedToWorkers(stages: { pipeline: string; function: string }[]): string {
  const cache = path.join(projectFolder, '.cache');
  mkdirSync(cache, { recursive: true });
  const root = mkdtempSync(path.join(cache, 'worker-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  cpSync(path.join(projectFolder, 'supabase/functions'), path.join(root, 'supabase/functions'), { recursive: true });
  writeFileSync(path.join(root, 'supabase/config.toml'), '');
  for (const { pipeline, function: name } of stages) {
    const file = path.join(root, 'supabase/functions/_pipelines', `${pipeline}.ts`);
    const text = readFileSync(file, 'utf8');
    expect(text.split(`function: '${name}',`)).toHaveLength(2);
    writeFileSync(file, text.replace(`function: '${name}',`, `function: '${name}', host: 'worker',`));
  }
  return root;
}

test('extraction of documents and OCR of pages move to a worker by one word', async () => {
  const root = movedToWorkers([
    { pipeline: 'documents', function: 'documents-extraction' },
    { pipeline: 'pages', function: 'pages-ocr' },
  ]);
  for (const name of ['documents', 'pages']) {
    const moved = await import(path.join(root, 'supabase/functions/_pipelines', `${name}.ts`));
    await documents.rows('select millrace.define($1)', [compiled(definitionOf(moved[name]))]);
  }
  // A function that is at work takes what comes until it has nothing more.
  const atWork = `select count(*)::int from millrace.workers where left_at is null and heartbeat_at > now() - interval '1 minute'`;
  const haveLeft = async () => (await documents.value(atWork)) === 0;
  await documents.until('the functions have ended their work', haveLeft, 90_000);
  const erin = await documents.user();
  const recording = (await sampleDocuments()).find(({ mediaType }) => mediaType?.startsWith('audio/')) as Upload;
  const submitted = [
    await submitDocument(erin, { name: 'report.pdf', bytes: await samplePdf() }),
    await submitDocument(erin, recording),
  ];
  await documents.sweep();
  expect(await Promise.all(submitted.map((id) => documents.phases(id)))).toEqual([
    ['extraction queued'],
    ['extraction queued'],
  ]);
  const { apiUrl, secretKey, webhookSecret, ocrUrl, ocrToken, transcriberUrl, transcriberToken } = documents.stack;
  const worker = spawn(process.execPath, ['--import', 'tsx', 'cli/millrace.ts', 'work', '--workdir', root], {
    cwd: projectFolder,
    env: {
      ...{ PATH: process.env.PATH, HOME: process.env.HOME, SUPABASE_URL: apiUrl, SUPABASE_SECRET_KEY: secretKey },
      ...{ WEBHOOK_SECRET: webhookSecret, OCR_URL: ocrUrl, OCR_AUTH_TOKEN: ocrToken },
      ...{ DEEPGRAM_URL: transcriberUrl, DEEPGRAM_API_KEY: transcriberToken },
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void worker.kill('SIGKILL'));
  for (const id of submitted) expect(await documents.settled(id)).toBe('completed');
  const seen = await documents.rows(
    `select distinct s.name, s.seen ->> 'release' as release from millrace.stages s where s.host = 'worker' order by 1`,
  );
  expect(seen).toEqual(['extraction', 'ocr'].map((name) => ({ name, release: 'millrace' })));
  worker.kill('SIGTERM');
  await once(worker, 'exit');
  expect(worker.exitCode).toBe(0);
});

async function samplePdf(): Promise<Uint8Array> {
  const pdf = (await sampleDocuments()).find(({ mediaType }) => mediaType === 'application/pdf');
  if (!pdf) throw new Error('there is no PDF among the sample documents');
  return pdf.bytes;
}
