// The stage extraction against real Storage and rows; only the services that read sound and pictures are played.
import { randomUUID } from 'node:crypto';
import { StorageClient } from '@supabase/storage-js';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { callFinish, callHandler, startService } from '../../packages/test/index.ts';
import type { Called, CallOptions } from '../../packages/test/test.d.ts';
import { MAX_HTML_BYTES } from '../../supabase/functions/_documents/extract-text.ts';
import { loadText, storeText } from '../../supabase/functions/_documents/stored-text.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { ExtractionResult } from '../../supabase/functions/_pipelines/documents-results.ts';
import { MAX_PDF_PAGES } from '../../supabase/functions/_services/pdf/pdf-text.ts';
import { extraction } from '../../supabase/functions/documents-extraction/handler.ts';
import { pictureOf, textPdf } from '../support/examples/documents.ts';
import { refusedUrl, startServer } from '../support/http-server.ts';

const organisation = 'org_ferry';
const webhookSecret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

let stack: Stack;
let database: pg.Client;
let storage: StorageClient;
let project: Env;

beforeAll(async () => {
  stack = await startStack({ services: false, fsync: false });
  database = new pg.Client({ connectionString: stack.dbUrl });
  database.on('error', () => {});
  await database.connect();
  const { secretKey, apiUrl } = stack;
  storage = new StorageClient(`${apiUrl}/storage/v1`, { apikey: secretKey, Authorization: `Bearer ${secretKey}` });
  project = { SUPABASE_URL: apiUrl, SUPABASE_SECRET_KEYS: JSON.stringify({ default: secretKey }) };
});
afterAll(async () => {
  await database?.end();
  await stack?.stop();
});

interface Document {
  id: string;
  source_path: string;
  clerk_org_id: string;
}

/** A document whose file is in Storage, under a name that says something else. */
async function uploaded(bytes: Uint8Array | string, name = `${randomUUID()}.bin`): Promise<Document> {
  const path = `${organisation}/${name}`;
  const { error } = await storage.from('documents').upload(path, bytes, { contentType: 'image/gif' });
  if (error) throw error;
  return inserted(path);
}

async function inserted(path: string): Promise<Document> {
  const { rows } = await database.query<Document>(
    `insert into public.document (source_path, metadata) values ($1, jsonb_build_object('clerk_org_id', $2::text))
     returning id, source_path, clerk_org_id`,
    [path, organisation],
  );
  return rows[0] as Document;
}

const extract = (row: Document, { env, ...options }: CallOptions = {}) =>
  callHandler(extraction, { row: { ...row }, env: { ...project, ...env }, ...options });

const finish = (row: Document, job: unknown, env = project) => callFinish(extraction, job, { row: { ...row }, env });

async function stored(entity: Document): Promise<string | undefined> {
  const { data } = await storage.from('extracted_text').download(`${entity.id}.txt`);
  return data?.text();
}

function resultOf(called: Called): ExtractionResult {
  expect(called).toMatchObject({ outcome: 'completed' });
  return called.result;
}

const failure = (code: string, message: RegExp, permanent = true) => ({
  outcome: 'failed',
  error: { code, permanent, message: expect.stringMatching(message) },
});

describe('a file that is read here', () => {
  test('has its text in Storage, and only its location in the result', async () => {
    const document = await uploaded(await textPdf([{ text: 'The ferry', x: 60, y: 60, size: 11 }]));
    const result = resultOf(await extract(document));
    expect(result).toEqual({
      text_location: `extracted_text/${document.id}.txt`,
      text_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      characters: 9,
      by: 'pdf',
      media_type: 'application/pdf',
      source_bytes: expect.any(Number),
      pages: 1,
      duration_seconds: null,
    });
    expect(await stored(document)).toBe('The ferry');
    expect(await loadText(result, project)).toBe('The ferry');
    const { data } = await storage.from('extracted_text').info(`${document.id}.txt`);
    expect(data?.contentType).toBe('text/plain; charset=utf-8');
  });

  test('may be larger than what is fetched to tell its type', async () => {
    const text = 'Ferry. '.repeat(100_000).trim();
    const result = resultOf(await extract(await uploaded(text)));
    expect(result).toMatchObject({ characters: text.length, by: 'plain_text', source_bytes: text.length });
    expect(await loadText(result, project)).toBe(text);
  });

  test('gives the same when it is read again, as after a crash between writing and completion', async () => {
    const document = await uploaded('# Ferry\n\nIt leaves at seven.');
    const first = resultOf(await extract(document));
    expect(resultOf(await extract(document))).toEqual(first);
    expect(await loadText(first, project)).toBe('# Ferry\n\nIt leaves at seven.');
  });

  test('gives two documents of the same file a text each', async () => {
    const document = await uploaded('The same.');
    const other = await inserted(document.source_path);
    const [one, two] = [resultOf(await extract(document)), resultOf(await extract(other))];
    expect(one.text_sha256).toBe(two.text_sha256);
    expect(one.text_location).not.toBe(two.text_location);
  });
});

describe('a PDF that is longer than one call reads', () => {
  const pages = 2 * MAX_PDF_PAGES + 20;
  const pageText = (page: number) => `Ferry ${page} leaves from pier ${page % 7}`;
  const long = textPdf(
    ...Array.from({ length: pages }, (_, at) => [{ text: pageText(at + 1), x: 60, y: 60, size: 11 }]),
  );
  const whole = Array.from({ length: pages }, (_, at) => pageText(at + 1)).join('\f');
  const partsOf = async ({ id }: Document) => (await storage.from('extracted_text').list(`${id}.parts`)).data;

  /** Reads on until nothing is handed back; `before` is called before each call. */
  async function readOn(document: Document, from: CallOptions['steps'], before = async (_call: number) => {}) {
    let steps = from;
    for (let calls = 1; ; calls++) {
      await before(calls);
      const called = await extract(document, { steps });
      if (called.outcome !== 'released') return { ...called, calls };
      expect(called.limit).toBeUndefined();
      steps = called.steps;
    }
  }

  test('is read on from where the former call ended, to one text, and leaves no parts', async () => {
    const document = await uploaded(Buffer.from(await long));
    const called = await readOn(document, [], async (call) => {
      expect(await partsOf(document)).toHaveLength(call - 1);
    });
    expect(called.calls).toBeGreaterThan(3);
    const result = resultOf(called);
    expect(result).toMatchObject({ by: 'pdf', pages, media_type: 'application/pdf' });
    expect(result).not.toHaveProperty('partly_read');
    expect(await loadText(result, project)).toBe(whole);
    expect(await partsOf(document)).toEqual([]);
  });

  test('is begun anew where the file was replaced meanwhile, and where its parts are gone, and leaves no former parts', async () => {
    const document = await uploaded(Buffer.from(await long));
    const called = await readOn(document, [], async (call) => {
      const replaced = { contentType: 'image/gif', upsert: true };
      if (call === 2) await storage.from('documents').upload(document.source_path, Buffer.from(await long), replaced);
    });
    expect(await loadText(resultOf(called), project)).toBe(whole);
    expect(await partsOf(document)).toEqual([]);
    expect(resultOf(await readOn(document, called.steps))).toEqual(called.result);
  });
});

test('a file that is large for its type is handed back until no other row is in its isolate', async () => {
  const document = await uploaded(`<html><body>${'<p>Ferry.</p>'.repeat(85_000)}`);
  expect(await extract(document)).toMatchObject({ outcome: 'released', limit: 'memory' });
  expect(resultOf(await extract(document, { isAlone: true }))).toMatchObject({ by: 'html' });
});

describe('the text in Storage', () => {
  test('keeps every character, whatever it is', async () => {
    const { id } = await inserted(`${organisation}/x`);
    const text = '\ufeffÅngström \u{1f6a2}\tZ\f\n';
    const location = await storeText(id, text, project);
    expect(location.characters).toBe(text.length);
    expect(await loadText(location, project)).toBe(text);
  });

  test('is not taken for another that was written over it', async () => {
    const { id } = await inserted(`${organisation}/x`);
    const location = await storeText(id, 'mine', project);
    await storeText(id, 'theirs', project);
    const loading = loadText(location, project);
    await expect(loading).rejects.toMatchObject({ code: 'text_changed', permanent: false });
    await expect(loading).rejects.toThrow(/queue extraction again/);
  });

  test('is missed for good where it is not', async () => {
    const location = {
      text_location: `extracted_text/${randomUUID()}.txt`,
      text_sha256: '0'.repeat(64),
      characters: 1,
    };
    const loading = loadText(location, project);
    await expect(loading).rejects.toMatchObject({ code: 'text_missing', permanent: true });
    await expect(loading).rejects.toThrow(/queue extraction again/);
  });
});

describe('a file that cannot be read fails for good, with what to do about it,', () => {
  test('when it is missing from Storage', async () => {
    const outcome = await extract(await inserted(`${organisation}/nowhere.pdf`));
    expect(outcome).toMatchObject(
      failure('file_not_found', /no file org_ferry\/nowhere\.pdf in the bucket documents: upload it there/),
    );
  });

  test('when it is empty', async () => {
    expect(await extract(await uploaded(''))).toMatchObject(failure('empty_document', /upload it again/));
  });

  test('when it is larger than a function can read, of which only the beginning is fetched', async () => {
    const document = await uploaded(`<html>${' '.repeat(MAX_HTML_BYTES)}`);
    expect(await extract(document)).toMatchObject(
      failure('file_too_large', /3\.1 MB, and at most 3 MB can be read: split it/),
    );
  });

  test('when it is of a type that nothing reads, whatever its name says', async () => {
    const outcome = await extract(await uploaded(Buffer.from('MThd\0\0\0\x06\0\x01', 'latin1'), 'song.txt'));
    expect(outcome).toMatchObject(failure('unsupported_type', /audio\/midi/));
  });

  test.each(['org_other/theirs.txt', `${organisation}/../org_other/theirs.txt`, `${organisation}/x?y`])(
    'when it is to lie at %j, outside of its organisation’s folder',
    async (path) => {
      await storage.from('documents').upload('org_other/theirs.txt', 'theirs', { upsert: true });
      const outcome = await extract({ id: randomUUID(), source_path: path, clerk_org_id: organisation });
      expect(outcome).toMatchObject(failure('strange_path', /must lie under org_ferry\//));
    },
  );
});

test('an outage of Storage is none of the file’s faults', async () => {
  const document = await uploaded('The ferry.');
  const url = await refusedUrl();
  expect(await extract(document, { env: { SUPABASE_URL: url } })).toMatchObject(
    failure('project_unreachable', /reached/, false),
  );
});

describe('a picture', () => {
  const picture = pictureOf([{ text: 'Ferry', x: 60, y: 60, size: 20 }]);

  test('goes to the OCR service under a URL that the service can fetch', async () => {
    const bytes = await picture.encode('png');
    const document = await uploaded(bytes, 'notes.txt');
    const service = await startService('ocr');
    service.hangs();
    const outcome = await extract(document, { env: service.env });
    expect(outcome).toMatchObject({ outcome: 'waiting', job: { service: 'ocr', id: 'job_1' } });
    const { document_url, page, metadata } = service.submitted[0]?.body ?? {};
    expect({ page, metadata }).toMatchObject({ page: 1, metadata: { stage: 'extraction', entity_id: document.id } });
    expect(Buffer.from(await (await fetch(document_url)).arrayBuffer()).equals(bytes)).toBe(true);
  });

  const job = (text: string) => {
    const page = { page: 1, width: 10, height: 10, text, confidence: 0.9, lines: [] };
    return { job_id: 'job_1', status: 'completed', result: page };
  };

  test('has the text that the job read', async () => {
    const bytes = await picture.encode('jpeg');
    const document = await uploaded(bytes);
    const outcome = await finish(document, job('Ferry \r\nat seven'));
    expect(outcome).toMatchObject({
      outcome: 'completed',
      result: { by: 'ocr', media_type: 'image/jpeg', source_bytes: bytes.length, pages: 1, duration_seconds: null },
    });
    expect(await stored(document)).toBe('Ferry\nat seven');
  });

  test.each([
    ['with nothing to read on it', job(' \n'), 'no_text', true],
    [
      'that the service could not open',
      { job_id: 'j', status: 'failed', error: { code: 'bad', message: 'no', permanent: true } },
      'bad',
      true,
    ],
    ['whose job says nothing', { job_id: 'j', status: 'completed', result: {} }, 'invalid_output', true],
  ])('%s fails', async (_, ended, code, permanent) => {
    const document = await uploaded(await picture.encode('png'));
    expect(await finish(document, ended)).toMatchObject({ outcome: 'failed', error: { code, permanent } });
    expect(await stored(document)).toBeUndefined();
  });

  test('without an OCR service waits for its settings', async () => {
    const outcome = await extract(await uploaded(await picture.encode('png')));
    expect(outcome).toMatchObject(failure('misconfigured', /OCR_URL/, false));
  });
});

describe('a recording', () => {
  const wav = Buffer.concat([Buffer.from('RIFF\x24\0\0\0WAVEfmt \x10\0\0\0', 'latin1'), Buffer.alloc(200_000)]);
  const settings = { DEEPGRAM_API_KEY: 'key', WEBHOOK_SECRET: webhookSecret };

  test('goes to the transcription service under a URL that the service can fetch', async () => {
    const document = await uploaded(wav, 'talk.pdf');
    const service = await startServer(() => ({ json: { request_id: 'request_1' } }));
    const outcome = await extract(document, { env: { ...settings, DEEPGRAM_URL: service.url } });
    expect(outcome).toMatchObject({ outcome: 'waiting', job: { service: 'transcription', id: 'request_1' } });
    const { url } = JSON.parse(service.received[0]?.body ?? '');
    expect((await (await fetch(url)).arrayBuffer()).byteLength).toBe(wav.length);
    const callback = new URL(service.received[0]?.path ?? '', service.url).searchParams.get('callback') ?? '';
    expect(new URL(callback).searchParams.get('entity_id')).toBe(document.id);
  });

  const transcription = (transcript: string) => ({
    metadata: { request_id: 'request_1', duration: 6.5, model_info: { m: { name: 'nova' } } },
    results: { channels: [{ detected_language: 'en', alternatives: [{ transcript }] }] },
  });

  test('has what was said in it', async () => {
    const document = await uploaded(wav);
    const outcome = await finish(document, transcription('The ferry leaves at seven.'), { ...project, ...settings });
    expect(outcome).toMatchObject({
      outcome: 'completed',
      result: {
        by: 'transcription',
        media_type: 'audio/wav',
        source_bytes: wav.length,
        pages: null,
        duration_seconds: 6.5,
      },
      usage: { model: 'nova' },
    });
    expect(await stored(document)).toBe('The ferry leaves at seven.');
  });

  test('in which nobody speaks fails for good, and is paid for', async () => {
    const outcome = await finish(await uploaded(wav), transcription(''), { ...project, ...settings });
    expect(outcome).toMatchObject({ ...failure('no_speech', /No speech/), usage: { model: 'nova' } });
  });

  test('that was paid for is kept while Storage is away', async () => {
    const document = await uploaded(wav);
    const env = { ...project, ...settings, SUPABASE_URL: await refusedUrl() };
    await expect(finish(document, transcription('Hello.'), env)).rejects.toMatchObject({ permanent: false });
  });

  test('whose end comes when the document has another text by now leaves that as it is', async () => {
    const document = await uploaded(wav);
    await storeText(document.id, 'Of a later run.', project);
    await database.query(`
      begin;
      alter table public.document disable trigger user;
      update public.document set extraction_status = 'completed' where id = '${document.id}';
      alter table public.document enable trigger user;
      commit`);
    const first = transcription('Of the first run.');
    expect(await finish(document, first, { ...project, ...settings })).toMatchObject({ usage: { model: 'nova' } });
    expect(await stored(document)).toBe('Of a later run.');
  });

  test('whose document is gone fails for good', async () => {
    const document = { id: randomUUID(), source_path: `${organisation}/x`, clerk_org_id: organisation };
    const outcome = await finish(document, transcription('Hello.'), { ...project, ...settings });
    expect(outcome).toMatchObject(failure('no_such_document', /any more/));
    expect(await stored(document)).toBeUndefined();
  });
});
