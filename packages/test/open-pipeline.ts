// A pipeline on a database of a test's own: rows, the work of its stages, the clock, and what became of a row.
import { isDeepStrictEqual } from 'node:util';
import type { Client } from 'pg';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { Rpc } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { databaseRpc } from './database-rpc.ts';
import { JobEnds } from './end-jobs.ts';
import { fakeStage, isStage, loadPipelines, loadStage } from './load-stages.ts';
import { projectFolder, runtimeLoader } from './project-runtime.ts';
import { expectRow } from './row-expectation.ts';
import { readRow, rowError } from './row-state.ts';
import { isCalling } from './scripted-service.ts';
import { moveClockTo, readClock, setClock } from './set-clock.ts';
import { type Working, workStage } from './stage-worker.ts';
import type * as Declared from './test.d.ts';
import { type LentDatabase, lendDatabase } from './test-server.ts';

type Row = Record<string, unknown>;

/** More rounds than any pipeline takes to come to rest: after so many, a stage must start rows anew. */
const mostRounds = 1_000;

/** How far the clock moves from one poll to the next, where a poll brings nothing new: twice as far each time. */
const firstPauseMs = 1_000;
const longestPauseMs = 3_600_000;

/**
 * Removes two fields from each answer. Without `wait_ms` a worker at the stage's limits leaves, and does not wait by the real clock.
 * Without `sweep_due` no worker sweeps: the test's own loop does, once nothing else is left.
 */
const withoutWaiting =
  (rpc: Rpc): Rpc =>
  async (name, args, signal) => {
    const answer = await rpc(name, args, signal);
    const { data } = answer as { data: { wait_ms?: unknown; sweep_due?: unknown } | null };
    if (data?.wait_ms == null && !data?.sweep_due) return answer;
    return { ...answer, data: { ...data, wait_ms: null, sweep_due: false } };
  };

/** Stages whose attempts are due, or would be but for a limit; and a row of nulls where the poll of a job is due. */
const dueStages = `
  select distinct p.name as pipeline, s.name as stage
  from millrace.attempts a join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id
  where a.state = 'queued' and a.queue_at <= millrace.now()
  union all select null, null where exists (select from millrace.attempts a where a.poll_at <= millrace.now())
  order by 1, 2`;

/** Finds when the next retry or poll is due; null where none is. */
const nextDue = `
  select min(least(case when a.state = 'queued' then a.queue_at end, a.poll_at)) as at from millrace.attempts a
  where a.state in ('queued', 'waiting') and least(case when a.state = 'queued' then a.queue_at end, a.poll_at) > millrace.now()`;

export const openPipeline: typeof Declared.openPipeline = async (name, options = {}) => {
  const root = options.root ?? projectFolder();
  const pipelines = await loadPipelines(root);
  const pipeline = pipelines.get(name);
  if (!pipeline) {
    throw new Error(
      `supabase/functions/_pipelines exports no pipeline ${name}: it has ${[...pipelines.keys()].sort().join(', ')}.`,
    );
  }
  checkNames(options.stages ?? {}, pipeline, pipelines);
  const database = await lendDatabase(root);
  await setClock(database.sql, new Date(options.at ?? Date.now()));
  return new OpenPipeline({ root, pipeline, pipelines, database, options });
};

/** Refuses work that is given to a stage that no pipeline has. */
function checkNames(stages: object, pipeline: PipelineDefinition, pipelines: Map<string, PipelineDefinition>): void {
  for (const key of Object.keys(stages)) {
    const [first = '', second] = key.split('.');
    if (second === undefined) pipeline.stage(first);
    else if (pipelines.has(first)) pipelines.get(first)?.stage(second);
    else throw new Error(`There is no pipeline ${first}, whose stage ${second} is given work.`);
  }
}

interface Opened {
  root: string;
  pipeline: PipelineDefinition;
  pipelines: Map<string, PipelineDefinition>;
  database: LentDatabase;
  options: Declared.PipelineOptions;
}

export class OpenPipeline implements Declared.TestPipeline {
  readonly name: string;
  readonly lines: Declared.LogLine[] = [];
  readonly #o: Opened;
  readonly #db: Client;
  readonly #working: Working;
  readonly #jobs: JobEnds;
  readonly #stages = new Map<string, Promise<Stage>>();

  constructor(opened: Opened) {
    const { root, pipeline, database, options } = opened;
    this.#o = opened;
    this.#db = database.sql;
    this.name = pipeline.name;
    const services = options.services ?? [];
    const env: Env = Object.assign({}, ...services.map((service) => service.env), options.env);
    const rpc = withoutWaiting(databaseRpc(database.worker));
    const load = runtimeLoader(root);
    this.#working = { load, rpc, env, lines: this.lines };
    this.#jobs = new JobEnds({ load, rpc, env, stageOf: (of, stage) => this.#stage(of, stage) });
  }

  /** Resolves to the stage as the test has it: its own code, or the work that was given for it. */
  #stage(of: string, name: string): Promise<Stage> {
    const key = `${of}.${name}`;
    const found = this.#stages.get(key) ?? this.#findStage(of, name, key);
    this.#stages.set(key, found);
    return found;
  }

  async #findStage(of: string, name: string, key: string): Promise<Stage> {
    const { root, pipelines, options } = this.#o;
    const pipeline = pipelines.get(of);
    if (!pipeline) throw new Error(`The database has a pipeline ${of} that _pipelines does not define.`);
    const given = options.stages ?? {};
    const place = key in given ? key : of === this.name && name in given ? name : undefined;
    if (place === undefined) return loadStage(root, pipeline, name);
    const work = given[place];
    return isStage(work) ? work : fakeStage(root, pipeline, name, work);
  }

  async sql<T>(statement: string, values: unknown[] = []): Promise<T[]> {
    return (await this.#db.query(statement, values)).rows as T[];
  }

  async insert(row: Row, table = this.#o.pipeline.input.entity.table): Promise<string> {
    const { key = 'id' } = this.#o.pipeline.input.entity;
    const columns = Object.keys(row);
    const names = columns.map((column) => `"${column.replaceAll('"', '""')}"`).join(', ');
    const places = columns.map((_, at) => `$${at + 1}`).join(', ');
    const values = columns.length > 0 ? `(${names}) values (${places})` : 'default values';
    const [inserted] = await this.sql<Row>(`insert into ${table} ${values} returning *`, Object.values(row));
    return String(inserted?.[key]);
  }

  async begin(row: Row): Promise<string> {
    const key = await this.insert(row);
    if (!(await readRow(this.#db, this.name, key))) await this.start(key);
    return key;
  }

  async start(key: string | number, stage?: string): Promise<void> {
    await this.sql('select millrace.start($1, $2::text, $3)', [this.name, String(key), stage ?? null]);
  }

  async decide(key: string | number, stage: string, answer: unknown): Promise<void> {
    const [open] = await this.sql<{ attempt_id: string }>(
      `select attempt_id from public.millrace_decisions
       where pipeline = $1 and entity_id = $2 and stage = $3 and closed_at is null`,
      [this.name, String(key), stage],
    );
    if (!open) {
      const row = await readRow(this.#db, this.name, String(key));
      throw rowError(`Row ${key} of ${this.name} waits for no decision at ${stage}.`, row, 'waiting', this.decide);
    }
    await this.sql('select public.millrace_decide($1, $2)', [open.attempt_id, JSON.stringify(answer)]);
    await this.work();
  }

  async work(): Promise<void> {
    for (let round = 0; round < mostRounds; round++) {
      // The sweep is the dearest call, so it waits until nothing else is left.
      const done = (await this.#workDue()) || (await this.#sweepAndWork());
      if (done === 0) return;
    }
    throw new Error(`${this.name} did not come to rest in ${mostRounds} rounds: does a stage start rows anew?`);
  }

  /** Works off what is due once; returns how many attempts and jobs that were. */
  async #workDue(): Promise<number> {
    let done = await this.#jobs.callAllBack((this.#o.options.services ?? []).filter(isCalling));
    for (const { pipeline, stage } of await this.sql<{ pipeline: string | null; stage: string }>(dueStages)) {
      done += pipeline ? await workStage(await this.#stage(pipeline, stage), this.#working) : await this.#jobs.poll();
    }
    return done;
  }

  async #sweepAndWork(): Promise<number> {
    await this.#sweep();
    return this.#workDue();
  }

  /** Sweeps until nothing is left to sweep, by the command of pg_cron's job. */
  async #sweep(): Promise<void> {
    const [job] = await this.sql<{ command: string }>(
      `select command from millrace.schedules where name = 'millrace-sweep'`,
    );
    await this.sql(job?.command ?? 'select millrace.sweep()');
  }

  async advance(interval: string): Promise<void> {
    const until = await this.#after(interval);
    await this.walk(interval, async () => false);
    await moveClockTo(this.#db, until);
    await this.work();
  }

  /**
   * Does what is due, then moves the clock on from one retry or poll to the next, until `isOver` says so, none is left or `within` is
   * over. Polls of jobs that go on are passed over, by twice as much each time.
   */
  async walk(within: string, isOver: () => Promise<boolean>): Promise<void> {
    const until = await this.#after(within);
    await this.work();
    for (let pauseMs = 0; !(await isOver()); ) {
      const [next] = await this.sql<{ at: Date | null }>(nextDue);
      if (!next?.at || next.at > until) return;
      const earliest = (await this.now()).getTime() + pauseMs;
      const before = await this.#countAttempts();
      await moveClockTo(this.#db, new Date(Math.min(Math.max(next.at.getTime(), earliest), until.getTime())));
      await this.work();
      const isSame = isDeepStrictEqual(await this.#countAttempts(), before);
      pauseMs = isSame ? Math.min(pauseMs * 2 || firstPauseMs, longestPauseMs) : 0;
    }
  }

  async #after(interval: string): Promise<Date> {
    const [found] = await this.sql<{ at: Date }>('select at + $1::interval as at from millrace_test.clock', [interval]);
    return found?.at ?? new Date();
  }

  #countAttempts(): Promise<unknown[]> {
    return this.sql('select a.state, count(*) as attempts from millrace.attempts a group by a.state order by a.state');
  }

  async now(): Promise<Date> {
    return readClock(this.#db);
  }

  async row(key: string | number): Promise<Declared.RowState> {
    const row = await readRow(this.#db, this.name, String(key));
    if (!row) throw new Error(`Row ${key} of ${this.name} has no run: start it, or write its status.`);
    return row;
  }

  expectRow(key: string | number): Declared.RowExpectation {
    return expectRow(this, String(key));
  }

  async close(): Promise<void> {
    await this.#o.database.giveBack();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
