// A session that does at random whatever users, people, workers and schedules do; a test runs several at once. With the
// same seed it makes the same choices as long as it gets the same answers.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Engine, Row } from '../engine.ts';
import type { Claimed } from '../worker.ts';
import { completed, failed, released, Worker, waiting } from '../worker.ts';

/** A generator of numbers from 0 up to (not including) a bound, always the same for the same seed (mulberry32). */
export function randomNumbers(seed: number): (bound: number) => number {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

/** Retries what has failed in a pipeline, in slices of the sweep. */
const retryInBulk = `
  select millrace.act(jsonb_build_object('verb', 'begin', 'bulk', millrace.act(jsonb_build_object(
    'verb', 'preview', 'do', '{"verb": "retry"}'::jsonb, 'filter', jsonb_build_object('pipeline', $1::text))) -> 'bulk'))`;

/** The states that a poller reports of all jobs under way. */
const noteJobs = `
  select public.millrace_note_jobs(jsonb_agg(to_jsonb(w) || jsonb_build_object('state', $1::text)))
  from (select a.id as attempt, a.service, a.job_id from millrace.attempts a where a.state = 'waiting') w
  having count(*) > 0`;

export class RandomSession {
  readonly #engine: Engine;
  readonly #random: (bound: number) => number;
  readonly #pipelines: Record<string, string[]>;
  readonly #entities: number;
  /** Errors other than the engine's own refusals. */
  readonly troubles: string[] = [];

  constructor(engine: Engine, seed: number, pipelines: Record<string, string[]>, entities: number) {
    this.#engine = engine;
    this.#random = randomNumbers(seed);
    this.#pipelines = pipelines;
    this.#entities = entities;
  }

  /** Takes `steps` random steps. */
  async run(steps: number): Promise<void> {
    const owner = await this.#engine.database.connect();
    const user = await this.#engine.database.connect('service_role');
    for (let step = 0; step < steps; step++) {
      try {
        await this.#step(owner, user);
      } catch (error) {
        const { code, message } = error as { code?: string; message: string };
        if (!code?.startsWith('MR')) this.troubles.push(`${code}: ${message}`);
        await Promise.all([owner.query('rollback'), user.query('rollback')]);
      }
    }
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random(list.length)] as T;
  }

  #stage(): [string, string] {
    const pipeline = this.#pick(Object.keys(this.#pipelines));
    return [pipeline, this.#pick(this.#pipelines[pipeline] as string[])];
  }

  #entity(): number {
    return 1 + this.#random(this.#entities);
  }

  async #step(owner: pg.Client, user: pg.Client): Promise<void> {
    const roll = this.#random(100);
    if (roll < 45) return this.#work(user);
    if (roll < 53) return this.#endJobs(owner);
    if (roll < 60) return this.#requeue(user, 1);
    if (roll < 64) return this.#requeue(user, 2 + this.#random(8));
    if (roll < 68) return this.#replaceEntity(user);
    if (roll < 72) return this.#holdEntities(user);
    const calls: [string, unknown[]][] = [
      [`select millrace.start('bare', $1, p_restart => $2)`, [this.#entity(), this.#random(2) === 0]],
      [
        `select millrace.cancel(id) from millrace.runs where status = 'running' and entity_id = $1 limit 1`,
        [this.#entity()],
      ],
      [`select millrace.retry(run_id) from millrace.dead_letters where entity_id = $1 limit 1`, [this.#entity()]],
      [retryInBulk, [this.#stage()[0]]],
      ['select millrace.sweep()', []],
      ['select public.millrace_poll(5)', []],
      [noteJobs, [this.#pick(['queued', 'running'])]],
      [`update public.test_clock set at = at + $1 * interval '1 second'`, [this.#random(25)]],
    ];
    await owner.query(...this.#pick(calls));
  }

  /** A worker that claims, reports once or more, says some calls twice, and leaves or dies. */
  async #work(client: pg.Client): Promise<void> {
    const [pipeline, stage] = this.#stage();
    const worker = Worker.over(client, stage, pipeline, this.#pick(hosts));
    const limit = 1 + this.#random(5);
    let batch = await worker.take(limit);
    for (let round = this.#random(3); round >= 0 && batch.length > 0; round--) {
      if (this.#random(4) === 0) await worker.renew(batch);
      const reports = batch.filter(() => this.#random(10) > 0).map((item) => this.#outcome(item));
      const answer = await worker.complete(reports, limit);
      ({ batch } = this.#random(5) > 0 ? answer : await worker.complete(reports, limit, worker.seq));
    }
    if (this.#random(3) > 0) await worker.leave(this.#random(2) === 0);
  }

  #outcome(item: Claimed): Row {
    const roll = this.#random(20);
    if (roll < 12) return completed(item, { by: item.attempt });
    if (roll < 14) return failed(item, { permanent: roll === 13 });
    if (roll < 17) return waiting(item, `job-${item.submission}`);
    return roll < 18 ? released(item) : completed({ ...item, token: forgedToken });
  }

  async #endJobs(owner: pg.Client): Promise<void> {
    const { rows } = await owner.query(
      `select coalesce(submission_id, id)::int as submission, service, job_id from millrace.attempts
       where state = 'waiting' or state = 'failed' and error ->> 'code' = 'deadline' order by md5(id::text || $1) limit $2`,
      [String(this.#random(1000)), 1 + this.#random(6)],
    );
    const ends = rows.map((row) =>
      this.#random(4) > 0
        ? { ...row, outcome: 'completed', result: { job: row.job_id } }
        : { ...row, outcome: 'failed', error: { code: 'http_500', message: 'no', permanent: this.#random(3) === 0 } },
    );
    await owner.query('select public.millrace_resume($1)', [JSON.stringify(ends)]);
  }

  /** One statement of a user over some rows, held in key order as any two users who want no deadlock of their own do. */
  async #requeue(user: pg.Client, count: number): Promise<void> {
    const stage = this.#random(3) > 0 ? 'first' : this.#pick(this.#pipelines.flow as string[]);
    const ids = Array.from({ length: count }, () => this.#entity());
    await user.query('begin');
    const { rows } = await user.query('select id from public.items where id = any ($1) order by id for no key update', [
      ids,
    ]);
    // Such rows alone: a row that somebody inserted anew since would be taken out of turn.
    const held = rows.map(({ id }) => id);
    await user.query(
      `update public.items set ${stage}_status = 'pending' where id = any ($1) and ${stage}_status = 'pending'`,
      [held],
    );
    await user.query(`update public.items set ${stage}_status = 'queued' where id = any ($1)`, [held]);
    await user.query('commit');
  }

  async #replaceEntity(user: pg.Client): Promise<void> {
    const id = this.#entity();
    await user.query('delete from public.items where id = $1', [id]);
    await user.query(`insert into public.items (id, first_status) values ($1, 'queued') on conflict do nothing`, [id]);
  }

  /** A user's transaction of several statements that has nothing to do with the engine but the rows it holds. */
  async #holdEntities(user: pg.Client): Promise<void> {
    const ids = [this.#entity(), this.#entity()].sort((a, b) => a - b);
    await user.query('begin');
    for (const id of ids) await user.query(`update public.items set label = label || '.' where id = $1`, [id]);
    await user.query('commit');
  }
}

const hosts = [randomUUID(), randomUUID(), randomUUID()];

/** A token that nobody was ever given. */
const forgedToken = '00000000-0000-0000-0000-000000000000';
