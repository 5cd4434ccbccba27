// Embeddings by a queue, a cron job and pg_net, written after the architecture of Supabase's guide on automatic embeddings: triggers
// clear the vector and queue a job, a job every ten seconds hands batches of ten to a function, which embeds one row after the other.
import OpenAI from 'openai';
import type { Engine, Row } from '../support/engine.ts';
import { dimensions, type Provider } from '../support/examples/memos.ts';

/** The queue stands in for pgmq: a message that was read is not seen again for five minutes, unless it is deleted. */
const tables = `
  create table public.queued_memos (
    id uuid primary key, account_id uuid not null, body text not null, embedding real[]);
  create table public.embedding_jobs (
    id bigint generated always as identity primary key, memo_id uuid not null,
    visible_at timestamptz not null default millrace.now(), reads int not null default 0);
  create function public.clear_embedding() returns trigger language plpgsql as $$
  begin
    new.embedding := null;
    return new;
  end $$;
  create function public.queue_embedding() returns trigger language plpgsql as $$
  begin
    insert into public.embedding_jobs (memo_id) values (new.id);
    return null;
  end $$;
  create trigger clear_embedding before update of body on public.queued_memos
  for each row when (old.body is distinct from new.body) execute function public.clear_embedding();
  create trigger embed_new after insert on public.queued_memos
  for each row execute function public.queue_embedding();
  create trigger embed_changed after update of body on public.queued_memos
  for each row when (old.body is distinct from new.body) execute function public.queue_embedding();`;

interface Job {
  id: string;
  memo_id: string;
}

export class QueuedEmbeddings {
  private readonly client: OpenAI;

  constructor(
    readonly engine: Engine,
    readonly provider: Provider,
  ) {
    this.client = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'key' });
  }

  async start(): Promise<this> {
    await this.engine.sql.query(tables);
    return this;
  }

  /** Ten seconds: the cron job reads up to a hundred messages, and calls the function for each ten of them. */
  async round(): Promise<void> {
    const jobs = await this.engine.rows<Row & Job>(
      `update public.embedding_jobs j set visible_at = millrace.now() + interval '5 minutes', reads = j.reads + 1
       where j.id in (select q.id from public.embedding_jobs q where q.visible_at <= millrace.now() order by q.id limit 100)
       returning j.id, j.memo_id`,
    );
    jobs.sort((one, other) => Number(one.id) - Number(other.id));
    for (let from = 0; from < jobs.length; from += 10) await this.invoke(jobs.slice(from, from + 10));
    this.provider.release();
    await this.engine.advance('10 seconds');
  }

  /** The function, until it ends, or the model stalls: then it goes on by itself, unless it was killed. */
  private async invoke(jobs: Job[]): Promise<void> {
    let isDead = false;
    const stalled = new Promise<void>((resolve) => {
      this.provider.onStall = (fate) => {
        isDead ||= fate === 'kills';
        resolve();
      };
    });
    await Promise.race([this.work(jobs, () => isDead), stalled]);
  }

  private async work(jobs: Job[], isDead: () => boolean): Promise<void> {
    for (const job of jobs) {
      try {
        const [row] = await this.engine.rows<{ body: string }>('select body from public.queued_memos where id = $1', [
          job.memo_id,
        ]);
        if (!row) throw new Error('the row is gone');
        const { data } = await this.client.embeddings.create({ model: 'test-model', input: row.body, dimensions });
        if (isDead()) return;
        const values = [job.memo_id, data[0]?.embedding];
        await this.engine.rows('update public.queued_memos set embedding = $2 where id = $1', values);
        await this.engine.rows('delete from public.embedding_jobs where id = $1', [job.id]);
      } catch {
        // The message is seen again in five minutes.
        if (isDead()) return;
      }
    }
  }
}
