// A worker as the engine sees one: it speaks the public functions as service_role and counts its calls.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Engine, Row } from './engine.ts';

export interface Claimed {
  attempt: number;
  token: string;
  run: number;
  trace_id: string;
  version: number;
  entity_id: string;
  entity: Row;
  needs: Row;
  retry_count: number;
  submission: number;
  isolated: boolean;
  failure: { code: string; message: string } | null;
}

export interface Verdict {
  attempt: number | null;
  verdict: 'accepted' | 'duplicate' | 'stale' | 'busy' | 'rejected';
  reason: string | null;
}

export interface WakeTarget {
  pipeline: string;
  stage: string;
  function: string;
}

export interface ClaimAnswer {
  status: 'working' | 'empty' | 'refused';
  reason: string | null;
  lease_ms: number;
  stage: Row;
  batch: Claimed[];
  wake: WakeTarget[];
  cut: boolean;
}

export type CompleteAnswer = ClaimAnswer & { items: Verdict[] };

export const completed = (item: Pick<Claimed, 'attempt' | 'token'>, result: unknown = { ok: true }): Row => ({
  attempt: item.attempt,
  token: item.token,
  outcome: 'completed',
  result,
});

export const failed = (item: Pick<Claimed, 'attempt' | 'token'>, error: Row = {}): Row => ({
  attempt: item.attempt,
  token: item.token,
  outcome: 'failed',
  error: { code: 'timeout', message: 'it took too long', ...error },
});

export const waiting = (item: Pick<Claimed, 'attempt' | 'token'>, jobId: string, service = 'scraper'): Row => ({
  attempt: item.attempt,
  token: item.token,
  outcome: 'waiting',
  service,
  job_id: jobId,
});

export const released = (item: Pick<Claimed, 'attempt' | 'token'>): Row => ({
  attempt: item.attempt,
  token: item.token,
  outcome: 'released',
});

export class Worker {
  readonly id = randomUUID();
  readonly host: string;
  readonly client: pg.Client;
  readonly pipeline: string;
  readonly stage: string;
  seq = 0;

  private constructor(client: pg.Client, pipeline: string, stage: string, host: string) {
    this.client = client;
    this.pipeline = pipeline;
    this.stage = stage;
    this.host = host;
  }

  /** A worker of a stage (of the pipeline `flow` unless named otherwise) in a session of its own. */
  static async of(engine: Engine, stage: string, pipeline = 'flow', host: string = randomUUID()): Promise<Worker> {
    return Worker.over(await engine.database.connect('service_role'), stage, pipeline, host);
  }

  /** A worker that shares a session of service_role with others, as the Data API's pool does. */
  static over(client: pg.Client, stage: string, pipeline: string, host: string = randomUUID()): Worker {
    return new Worker(client, pipeline, stage, host);
  }

  /** Claims up to `limit` attempts with the next sequence number, or with the one given. */
  async claim(limit = 10, seq = ++this.seq): Promise<ClaimAnswer> {
    const values = [this.pipeline, this.stage, this.id, this.host, seq, limit];
    return this.#call('select public.millrace_claim($1, $2, $3, $4, $5, $6) as answer', values);
  }

  /** Claims and returns the batch alone. */
  async take(limit = 10): Promise<Claimed[]> {
    return (await this.claim(limit)).batch;
  }

  /** Claims one attempt; throws when there is none. */
  async takeOne(): Promise<Claimed> {
    const answer = await this.claim(1);
    const [item] = answer.batch;
    if (!item) throw new Error(`there was nothing to claim at ${this.stage}: ${JSON.stringify(answer)}`);
    return item;
  }

  /** Reports outcomes and claims the next `limit` attempts. */
  async complete(items: unknown, limit = 0, seq = ++this.seq, goodbye = false): Promise<CompleteAnswer> {
    const values = [this.id, seq, typeof items === 'string' ? items : JSON.stringify(items), limit, goodbye];
    return this.#call('select public.millrace_complete($1, $2, $3, $4, $5) as answer', values);
  }

  /** Reports all that it holds, asks for more, and signs off if there is none. */
  async goodbye(items: Row[], limit = 10): Promise<CompleteAnswer> {
    return this.complete(items, limit, ++this.seq, true);
  }

  /** Reports outcomes and returns the verdicts alone. */
  async report(...items: Row[]): Promise<string[]> {
    return (await this.complete(items)).items.map((item) => item.verdict);
  }

  /** Renews its leases; of the items given, whose handlers still run, `lost` names those that are no longer its own. */
  async renew(running: Claimed[] = []): Promise<{ renewed: number; lost: number[] }> {
    const values = [this.id, running.map((item) => item.attempt)];
    return this.#call('select public.millrace_renew($1, $2) as answer', values);
  }

  /** Signs off; `cost` is what it reckons that a row takes. */
  async leave(
    handOver = false,
    cost?: { cpuMs: number; bytes: number },
  ): Promise<{ left: boolean; wake: WakeTarget[] }> {
    const values = [this.id, handOver, cost?.cpuMs ?? null, cost?.bytes ?? null];
    return this.#call('select public.millrace_leave($1, $2, $3, $4) as answer', values);
  }

  async #call<T>(statement: string, values: unknown[]): Promise<T> {
    return (await this.client.query<{ answer: T }>(statement, values)).rows[0]?.answer as T;
  }
}

/** Reports the end of external jobs, as the callback and the poller do. */
export async function resume(engine: Engine, items: unknown): Promise<{ items: Verdict[]; wake: WakeTarget[] }> {
  const client = await engine.database.connect('service_role');
  const { rows } = await client.query('select public.millrace_resume($1) as answer', [JSON.stringify(items)]);
  engine.database.giveBack(client);
  return rows[0].answer;
}

/** Drains a stage once: claims what is due and completes all of it with a result naming stage and entity. */
export async function runStage(engine: Engine, stage: string, pipeline = 'flow'): Promise<Claimed[]> {
  const worker = await Worker.of(engine, stage, pipeline);
  const batch = await worker.take(1000);
  await worker.complete(batch.map((item) => completed(item, { stage, entity: item.entity_id })));
  await worker.leave();
  engine.database.giveBack(worker.client);
  return batch;
}

/** Completes the one due attempt of a stage with this result; returns what its worker was given. */
export async function finish(engine: Engine, stage: string, result: unknown, pipeline = 'flow'): Promise<Claimed> {
  const worker = await Worker.of(engine, stage, pipeline);
  const item = await worker.takeOne();
  await worker.complete([completed(item, result)]);
  await worker.leave();
  engine.database.giveBack(worker.client);
  return item;
}
