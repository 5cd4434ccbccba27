// The example embeddings at work: the real engine, its function as workers that stall and die, the local model as a provider that fails.
import { Hono } from 'hono';
import type pg from 'pg';
import { onTestFinished } from 'vitest';
import { listen } from '../../../local/services/http/listen.ts';
import { embedText } from '../../../local/services/model/embed-text.ts';
import { embeddings } from '../../../local/services/model/embeddings-request.ts';
import { databaseRpc } from '../../../packages/test/database-rpc.ts';
import { splitBody } from '../../../supabase/functions/_embeddings/split-body.ts';
import type { Rpc } from '../../../supabase/functions/_millrace/engine/engine-client.ts';
import { readPlatform } from '../../../supabase/functions/_millrace/engine/platform.ts';
import type { Env } from '../../../supabase/functions/_millrace/settings.ts';
import { defineBatchStage } from '../../../supabase/functions/_millrace/stage/batch-stage.ts';
import { createDrain } from '../../../supabase/functions/_millrace/worker/drain-stage.ts';
import { Isolate } from '../../../supabase/functions/_millrace/worker/isolate.ts';
import { memos } from '../../../supabase/functions/_pipelines/memos.ts';
import { embedMemos, embedStage } from '../../../supabase/functions/memos-embed/handler.ts';
import type { Engine } from '../engine.ts';
import { budgetOf } from '../runtime/make-drain.ts';

export const dimensions = 1536;
/** US dollars for a million tokens. */
export const price = 0.02;

/** The fate of a call of the model: an answer, an error, an answer that comes late, or a caller that dies before it comes. */
export type Fate = 'answers' | 'refuses' | 'fails' | 'stalls' | 'kills';

/** The local model, as a provider that fails by plan. It counts what it sells. */
export class Provider {
  calls = 0;
  tokens = 0;
  texts = 0;
  url = '';
  /** Decides what becomes of a call, and may do something while the call is under way. */
  plan: (texts: string[]) => Promise<Fate> | Fate = () => 'answers';
  /** How long its vectors are, whatever a request says. */
  makes?: number;
  private stalled: { resolve(): void; rounds: number }[] = [];
  /** Called when the caller of the model stalls or dies. */
  onStall: (fate: Fate) => void = () => {};

  async start(): Promise<this> {
    const app = new Hono();
    app.post('/v1/embeddings', async (c) => {
      const body = await c.req.json();
      this.calls++;
      const fate = await this.plan([body.input].flat());
      if (fate === 'refuses') return c.json({ error: { message: 'slow down' } }, 429, { 'retry-after-ms': '1' });
      if (fate === 'fails') return c.json({ error: { message: 'oh' } }, 500, { 'retry-after-ms': '1' });
      try {
        const answer = embeddings({ ...body, dimensions: this.makes ?? body.dimensions }) as {
          usage: { prompt_tokens: number };
        };
        this.tokens += answer.usage.prompt_tokens;
        this.texts += [body.input].flat().length;
        if (fate !== 'answers') await this.stall(fate);
        return c.json(answer);
      } catch (error) {
        return c.json({ error: { message: (error as Error).message } }, 400);
      }
    });
    const server = await listen(app.fetch);
    onTestFinished(() => server.stop());
    this.url = server.url;
    return this;
  }

  private stall(fate: Fate): Promise<void> {
    this.onStall(fate);
    return new Promise((resolve) => this.stalled.push({ resolve, rounds: fate === 'kills' ? 40 : 3 }));
  }

  /** Lets a round go by for the answers that stall. */
  release(all = false): void {
    for (const one of this.stalled) one.rounds--;
    const due = this.stalled.filter(({ rounds }) => all || rounds <= 0);
    this.stalled = this.stalled.filter((one) => !due.includes(one));
    for (const { resolve } of due) resolve();
  }
}

/** The example over a database of the project. */
export class MemoSite {
  readonly env: Env = { SUPABASE_SECRET_KEYS: '{"default":"secret"}', LLM_EMBEDDING_MODEL: 'test-model' };
  readonly provider = new Provider();
  private readonly idle: pg.Client[] = [];

  constructor(readonly engine: Engine) {}

  async start(): Promise<this> {
    await this.provider.start();
    const app = new Hono();
    app.post('/rest/v1/rpc/:name', async (c) => {
      const { data, error, status } = await this.rpc(c.req.param('name'), await c.req.json(), c.req.raw.signal);
      return c.json((error ?? data) as object, status as 200);
    });
    const server = await listen(app.fetch);
    onTestFinished(() => server.stop());
    Object.assign(this.env, { SUPABASE_URL: server.url, LLM_URL: `${this.provider.url}/v1` });
    Object.assign(this.env, { LLM_PRICE_EMBEDDING: String(price) });
    return this;
  }

  /** Calls the database's functions in as many sessions as it takes at once. */
  private readonly rpc: Rpc = async (name, args, signal) => {
    const session = this.idle.pop() ?? (await this.engine.database.connect('service_role'));
    const answer = await databaseRpc(session)(name, args, signal);
    this.idle.push(session);
    return answer;
  };

  /** One invocation of the function, which ends when its stage is empty, or stalls, or dies. */
  async work(): Promise<void> {
    let isDead = false;
    const rpc: Rpc = async (...call) => {
      const answer = isDead ? null : await this.rpc(...call);
      return isDead || answer === null ? new Promise<never>(() => {}) : answer;
    };
    const stalled = new Promise<void>((resolve) => {
      this.provider.onStall = (fate) => {
        isDead ||= fate === 'kills';
        resolve();
      };
    });
    // Each isolate has its own module, and so its own calls.
    const { input, output } = embedStage;
    const stage = defineBatchStage({
      pipeline: memos,
      stage: 'embed',
      maxRows: 50,
      input,
      output,
      handler: embedMemos,
    });
    const place = { env: this.env, platform: readPlatform(this.env), rpc };
    const bounds = { isolate: new Isolate(), budget: budgetOf(120_000), probe: async () => true };
    const ended = createDrain(stage, place, bounds).drain.run();
    await Promise.race([ended, stalled]);
  }

  /** Ten seconds: the sweep, and the function. */
  async round(): Promise<void> {
    await this.engine.sweepAll();
    await this.work();
    this.provider.release();
    await this.engine.advance('10 seconds');
  }

  /** Lets time go by until nothing is due and no run goes on. */
  async untilDone(rounds = 100): Promise<void> {
    for (let at = 0; at < rounds; at++) {
      await this.round();
      const open = await this.engine.value(
        `select (select count(*) from public.memos where embed_at is not null)
           + (select count(*) from millrace.runs r where r.status = 'running')`,
      );
      if (open === '0') return;
    }
    throw new Error(`not done after ${rounds} rounds: ${(await this.faults()).slice(0, 3).join().slice(0, 300)}`);
  }

  /** Adds a memo; returns its id. */
  add(body: string, account = '00000000-0000-4000-8000-000000000001'): Promise<string> {
    return this.engine.value('insert into public.memos (account_id, body) values ($1, $2) returning id', [
      account,
      body,
    ]);
  }

  edit(id: string, body: string): Promise<unknown> {
    return this.engine.sql.query('update public.memos set body = $2 where id = $1', [id, body]);
  }

  /** Chunks that are no longer their memo's, or whose vector is another text's, and those that a memo lacks. */
  async faults(): Promise<string[]> {
    const bodies = await this.engine.rows<{ id: string; body: string }>('select id, body from public.memos');
    const rows = await this.engine.rows<{ memo_id: string; text: string; is_current: boolean; embedding: string }>(
      'select memo_id, text, is_current, embedding::real[]::text as embedding from public.memo_chunks',
    );
    return bodies.flatMap(({ id, body }) => {
      const wanted = splitBody(body);
      const own = rows.filter(({ memo_id }) => memo_id === id);
      const stale = own.filter(({ text, is_current }) => !is_current || !wanted.includes(text));
      const lost = wanted.filter((text) => !own.some((row) => row.text === text));
      const wrong = own.filter(({ text, embedding }) => !isVectorOf(text, embedding.replace(/[{}]/g, '')));
      return [
        ...stale.map(({ text }) => `stale: ${text}`),
        ...lost.map((text) => `lost: ${text}`),
        ...wrong.map(({ text }) => `another text’s vector: ${text}`),
      ];
    });
  }
}

/** Whether these numbers, parted by commas, are the model's vector of a text. */
export function isVectorOf(text: string, numbers: string): boolean {
  const vector = numbers.split(',').map(Number);
  const product = embedText(text, dimensions).reduce((sum, value, at) => sum + value * (vector[at] ?? 0), 0);
  return product > 0.9999;
}
