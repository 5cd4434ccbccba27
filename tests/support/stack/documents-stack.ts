// A whole stack with the documents pipelines: files go in, and a test waits for what becomes of them.
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Row } from '../engine.ts';
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts';
import { functionsFolder } from './functions-folder.ts';
import { type Caller as AnyCaller, ProjectStack } from './project-stack.ts';

const patienceMs = 90_000;

// Which way documents go while their flag names no share: the old one where nobody says so.
const newWay = { USE_NEW_PIPELINE: 'true' };

/** A signed-in user of an organisation. */
export interface Caller extends AnyCaller {
  org: string;
}

/** A file to upload. */
export interface Upload {
  name: string;
  bytes: Uint8Array | string;
  /** As the application that uploads it believes. */
  mediaType?: string;
  platform?: string;
}

export class DocumentsStack extends ProjectStack {
  #proxy: FaultProxy | undefined;
  #removeFolder = () => {};

  /** Starts the stack. With `proxy` a test hears what the functions ask of the project. */
  static async start(options: { env?: Record<string, string>; proxy?: boolean } = {}): Promise<DocumentsStack> {
    if (!options.proxy) return new DocumentsStack(await ProjectStack.launch({ env: { ...newWay, ...options.env } }));
    const proxy = await startFaultProxy();
    const folder = functionsFolder({ projectUrlFrom: 'PROJECT_PROXY_URL' });
    const env = { ...newWay, ...options.env, PROJECT_PROXY_URL: proxy.url };
    const documents = new DocumentsStack(await ProjectStack.launch({ env, functionsDir: folder.path }));
    proxy.target = documents.stack.apiUrl;
    documents.#proxy = proxy;
    documents.#removeFolder = folder.remove;
    return documents;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#proxy?.stop();
    this.#removeFolder();
  }

  /** The calls that the functions ask of the project. */
  get proxy(): FaultProxy {
    if (!this.#proxy) throw new Error('this stack was started without a proxy');
    return this.#proxy;
  }

  /** A user of a new organisation. */
  async user(): Promise<Caller> {
    const org = `org_${randomUUID().slice(0, 8)}`;
    return { org, ...(await this.signedIn({ org_id: org })) };
  }

  async document(id: string): Promise<Row> {
    const [row] = await this.rows('select * from public.document where id = $1', [id]);
    return row ?? {};
  }

  async job(id: string): Promise<Row> {
    const [row] = await this.rows('select * from public.pipeline_job where document_id = $1', [id]);
    return row ?? {};
  }

  /** The phases of a document's runs in order, such as "extraction completed". */
  async phases(id: string): Promise<string[]> {
    const rows = await this.rows(
      `select phase || ' ' || status || coalesce(' ' || error_type, '') as line from public.pipeline_phase where pipeline_job_id = $1 order by attempt_id`,
      [id],
    );
    return rows.map(({ line }) => line as string);
  }

  /** Waits until a document's latest run is over and returns how it ended; `meanwhile` is called now and then. */
  async settled(id: string, meanwhile?: () => Promise<unknown>): Promise<string> {
    const over = async () => {
      await meanwhile?.();
      const { status } = await this.job(id);
      return status === 'completed' || status === 'failed';
    };
    await this.until('the document is over', over, patienceMs, async () => [
      ...(await this.rows('select * from public.pipeline_phase where pipeline_job_id = $1 order by attempt_id', [id])),
      ...this.lastWords('documents-extraction', 'documents-chunking', 'documents-kg-ingest', 'chunks-kg', 'millrace'),
    ]);
    return (await this.job(id)).status as string;
  }

  /** Chunks, entities and facts of a document, as one value to compare. */
  async graph(id: string): Promise<Row> {
    return this.value<Row>(
      `select jsonb_build_object(
        'chunks', (select jsonb_agg(to_jsonb(c) order by c.ordinal) from public.chunk c where c.document_id = $1),
        'mentions', (select jsonb_agg(jsonb_build_array(m.chunk_id, e.key) order by m.chunk_id, e.key) from public.kg_mention m join public.kg_entity e on e.id = m.entity_id join public.chunk c on c.id = m.chunk_id where c.document_id = $1),
        'facts', (select jsonb_agg(jsonb_build_array(k.chunk_id, k.fact) order by k.chunk_id, k.fact) from public.kg_edge k join public.chunk c on c.id = k.chunk_id where c.document_id = $1))`,
      [id],
    );
  }
}

/** Uploads a file and inserts its row, as an application does. Returns the row's id. */
export async function addDocument({ org, rows, storage }: Caller, upload: Upload): Promise<string> {
  const { name, bytes, mediaType = 'application/octet-stream', platform = 'upload' } = upload;
  const id = randomUUID();
  const path = `${org}/${id}/${name}`;
  const file = new Blob([typeof bytes === 'string' ? bytes : new Uint8Array(bytes)], { type: mediaType });
  const uploaded = await storage.from('documents').upload(path, file, { contentType: mediaType });
  expect(uploaded.error).toBeNull();
  const metadata = { source_name: name, source_platform: platform, clerk_org_id: org };
  const inserted = await rows.from('document').insert({ id, source_path: path, metadata });
  expect(inserted.error).toBeNull();
  return id;
}

/** Writes `queued` to the status of a phase. */
export async function queueDocument({ rows }: Caller, id: string, phase = 'extraction'): Promise<void> {
  const { error } = await rows
    .from('document')
    .update({ [`${phase}_status`]: 'queued' })
    .eq('id', id);
  expect(error).toBeNull();
}

/** Uploads a file and starts it. Returns the row's id. */
export async function submitDocument(caller: Caller, upload: Upload): Promise<string> {
  const id = await addDocument(caller, upload);
  await queueDocument(caller, id);
  return id;
}

/** So much text about a place, in which nobody has a name, that its section is not joined with its neighbour's. */
export function logbookOf(place: string): string {
  const days = Array.from(
    { length: 12 },
    (_, day) => `On day ${day + 1} the keeper of the ${place} wrote down the wind,`,
  );
  return days.map((day) => `${day} the tide and the boats that came in.`).join(' ');
}
