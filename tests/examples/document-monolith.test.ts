import nodeProcess from 'node:process';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../local/services/http/listen.ts';
import { startModel } from '../../local/services/model/server.ts';
import type { Usage } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { HandlerContext } from '../../supabase/functions/_millrace/stage/stage.ts';
import { monolithResult } from '../../supabase/functions/_pipelines/document-monolith-results.ts';
import { processDocument } from '../../supabase/functions/document-monolith/handler.ts';
import { summedUsage } from '../../supabase/functions/document-monolith/sum-usage.ts';
import { makeContext } from '../support/context.ts';
import { startDocumentProject } from '../support/examples/document-project.ts';
import { transcriptionOf } from '../support/examples/transcription.ts';
import { startServer } from '../support/http-server.ts';

const id = '0b9f6a34-6f0e-4a58-8a4b-0f4f5c1f3a10';
const entity = { id, source_path: 'org_a/file', clerk_org_id: 'org_a' };
const prices = { LLM_PRICE_INPUT: '1', LLM_PRICE_OUTPUT: '2' };

const sentence = (n: number) =>
  `In year ${n} Brackmoor Engineering rebuilt lock ${n} of the Wendle Canal for the Wendle Canal Trust.`;
const section = (n: number) => `## Year ${n}\n\n${Array.from({ length: 12 }, () => sentence(n)).join(' ')}`;
const longText = `# Locks\n\n${Array.from({ length: 14 }, (_, n) => section(n + 1)).join('\n\n')}`;

/** The local model behind an API that keeps what is asked; `refuse` may answer in its place. */
async function openModel(refuse: (asked: number) => Response | Promise<Response> | undefined = () => undefined) {
  const model = await startModel({ env: {} });
  const asked: { key: string | null; body: Record<string, unknown> }[] = [];
  const api = await listen(async (request: Request) => {
    const body = await request.text();
    asked.push({ key: request.headers.get('idempotency-key'), body: JSON.parse(body) });
    const { pathname } = new URL(request.url);
    const headers = { 'content-type': 'application/json' };
    return refuse(asked.length) ?? fetch(`${model.url}${pathname}`, { method: 'POST', headers, body });
  });
  onTestFinished(async () => {
    await api.stop();
    await model.stop();
  });
  return { asked, env: { LLM_URL: `${api.url}/v1`, LLM_MODEL: 'local', LLM_MODE: 'background' } };
}

/** Runs the handler on one file. */
async function process(file: Uint8Array | string, env: Record<string, string>, changes: Partial<HandlerContext> = {}) {
  const drafts = [11, 10].map((attempt_id) => ({
    attempt_id,
    document_id: id,
    id: `of an earlier claim of ${attempt_id}`,
  }));
  const project = await startDocumentProject({ 'org_a/file': file }, drafts);
  const { context, usages } = makeContext({ ...project.env, ...env }, { entityId: id, ...changes });
  return { project, usages, result: processDocument({ entity }, context) };
}

const sum = (numbers: (number | null)[]) => numbers.reduce<number>((total, n) => total + (n ?? 0), 0);

describe('a text', () => {
  test('is stored, cut, and read for facts in one call, which is billed as one', async () => {
    const model = await openModel();
    const { project, usages, result } = await process(longText, { ...model.env, ...prices });
    const done = monolithResult.parse(await result);
    expect(done).toMatchObject({ by: 'markdown', media_type: 'text/markdown', pages: null, duration_seconds: null });
    expect(done.text_location).toBe(`extracted_text/${id}.txt`);
    expect(project.texts.get(`${id}.txt`)).toContain(sentence(9));
    expect(done.chunks).toBeGreaterThan(4);
    // The draft that an earlier claim of this attempt has drafted may be of another text; other attempts' drafts are theirs.
    const [others, ...drafts] = project.drafts;
    expect(others).toMatchObject({ attempt_id: 10 });
    expect(drafts.map(({ attempt_id, document_id }) => [attempt_id, document_id])).toEqual(
      Array.from({ length: done.chunks }, () => [11, id]),
    );
    expect(done.tokens).toBe(sum(drafts.map(({ tokens }) => Number(tokens))));
    expect(done.facts.map(({ chunk_id }) => chunk_id)).toEqual(drafts.map((draft) => draft.id));
    expect(done.facts.every(({ entities }) => entities.length > 0)).toBe(true);

    expect(usages).toHaveLength(done.chunks);
    expect(usages.at(-1)?.input_tokens).toBeGreaterThan(100 * done.chunks);
    const { input_tokens: tokensIn, output_tokens: tokensOut, cost_usd: cost } = usages.at(-1) as Usage;
    expect(cost).toBeCloseTo(((tokensIn ?? 0) + 2 * (tokensOut ?? 0)) / 1_000_000, 9);
  });

  test('is asked about inline, whatever LLM_MODE says, each chunk under a key of its own', async () => {
    const model = await openModel();
    const { result } = await process(longText, model.env);
    const { chunks } = await result;
    expect(model.asked.map(({ body }) => body.background)).toEqual(Array(chunks).fill(false));
    expect(new Set(model.asked.map(({ key }) => key)).size).toBe(chunks);
    expect(model.asked.every(({ key }) => key?.startsWith('trace-11-'))).toBe(true);
  });

  test('of many chunks leaves no listener for each of them on one signal', async () => {
    const warnings: Error[] = [];
    const keep = (warning: Error) => void warnings.push(warning);
    nodeProcess.on('warning', keep);
    onTestFinished(() => void nodeProcess.off('warning', keep));
    const model = await openModel();
    const { result } = await process(longText, model.env);
    // Node warns once a signal has eleven.
    expect((await result).chunks).toBeGreaterThan(11);
    await setImmediate();
    expect(warnings).toEqual([]);
  });

  test('fails when one chunk fails, with what was used up, and gives up what is under way', async () => {
    const busy = () => Response.json({ error: { message: 'busy' } }, { status: 503 });
    const silent = () => new Promise<Response>(() => {});
    const model = await openModel((asked) => (asked < 6 ? undefined : asked === 6 ? busy() : silent()));
    const { usages, result } = await process(longText, model.env);
    await expect(result).rejects.toMatchObject({ code: 'server_error', permanent: false });
    expect(usages.length).toBeGreaterThan(0);
    expect(model.asked.length).toBeLessThanOrEqual(9);
  });

  test('that takes longer than the call has fails retriably, and says how far it came and what helps', async () => {
    const model = await openModel();
    const { result } = await process(longText, model.env, { timeoutMs: 3_000 });
    await expect(result).rejects.toMatchObject({ code: 'timeout', permanent: false });
    await expect(result).rejects.toThrow(/when the 3 s of one call were used up.*public\.document_way/);
    expect(model.asked).toEqual([]);
  });

  test('is given up when the attempt is taken away', async () => {
    const taken = new AbortController();
    const model = await openModel((asked) => {
      if (asked === 2) taken.abort(new Error('taken away'));
      return undefined;
    });
    const { result } = await process(longText, model.env, { signal: taken.signal });
    await expect(result).rejects.toThrow();
    expect(model.asked.length).toBeLessThan(9);
  });
});

/** The head of a PNG: what it shows does not matter here. */
const picture = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex');

describe('a picture', () => {
  test('is read by an OCR job that is asked after in the call, and calls nobody back', async () => {
    const model = await openModel();
    let asked = 0;
    const page = { page: 1, width: 10, height: 10, text: `Notice\n\n${sentence(1)}`, confidence: 1, lines: [] };
    const ocr = await startServer(({ method }) => {
      if (method === 'POST') return { status: 202, json: { job_id: 'j1' } };
      asked += 1;
      return {
        json: asked === 1 ? { job_id: 'j1', status: 'running' } : { job_id: 'j1', status: 'completed', result: page },
      };
    });
    const { project, result } = await process(picture, { ...model.env, OCR_URL: ocr.url });
    expect(await result).toMatchObject({ by: 'ocr', media_type: 'image/png', pages: 1, source_bytes: picture.length });
    expect(asked).toBe(2);
    expect(JSON.parse(ocr.received[0]?.body ?? '')).not.toHaveProperty('callback_url');
    expect(project.texts.get(`${id}.txt`)).toContain(sentence(1));
  });

  test('whose job is not done in time fails retriably', async () => {
    const model = await openModel();
    const ocr = await startServer(({ method }) => ({
      status: method === 'POST' ? 202 : 200,
      json: { job_id: 'j1', status: 'running' },
    }));
    const { result } = await process(picture, { ...model.env, OCR_URL: ocr.url }, { timeoutMs: 5_000 });
    await expect(result).rejects.toMatchObject({ code: 'timeout', permanent: false });
    await expect(result).rejects.toThrow('The OCR service was still reading the picture when');
  });
});

test('a recording is transcribed in the call, and its price is part of the sum', async () => {
  const model = await openModel();
  const deepgram = await startServer(() => ({ json: transcriptionOf([sentence(1), sentence(2)]) }));
  const wav = Buffer.from('RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00', 'latin1');
  const env = { DEEPGRAM_URL: deepgram.url, DEEPGRAM_API_KEY: 'key', DEEPGRAM_PRICE_MINUTE: '0.6', ...model.env };
  const { usages, result } = await process(wav, { ...env, ...prices });
  expect(await result).toMatchObject({ by: 'transcription', pages: null, duration_seconds: 4 });
  expect(deepgram.received.map(({ path }) => /callback/.test(path))).toEqual([false]);
  expect(usages.at(-1)).toMatchObject({ audio_seconds: 4, model: expect.stringMatching(/nova-3, local/) });
  expect(usages.at(-1)?.cost_usd).toBeGreaterThan(0.04);
});

test.each([
  ['an empty file', '', 'empty_document'],
  ['a file that nobody can read', Buffer.from([0, 1, 2, 3, 255, 254, 0, 9]), 'unsupported_type'],
])('%s fails for good, and nobody is asked', async (_what, file, code) => {
  const model = await openModel();
  const { result } = await process(file, model.env);
  await expect(result).rejects.toMatchObject({ code, permanent: true });
  expect(model.asked).toEqual([]);
});

test('the sum of usages knows what is unknown, and names each model and prompt once', () => {
  const reported: Usage[] = [];
  const report = summedUsage((usage) => reported.push(usage));
  report({ model: 'ear', input_tokens: null, output_tokens: null, audio_seconds: 30, cost_usd: null });
  report({ model: 'pen', prompt: 'kg-1', input_tokens: 10, output_tokens: 2, cost_usd: 0.5 });
  report({ model: 'pen', prompt: 'kg-1', input_tokens: 5, output_tokens: 1, cost_usd: 0.25 });
  expect(reported[0]?.cost_usd).toBeNull();
  expect(reported.at(-1)).toEqual({
    model: 'ear, pen',
    prompt: 'kg-1',
    input_tokens: 15,
    output_tokens: 3,
    audio_seconds: 30,
    cost_usd: 0.75,
  });
});
