// A session that plays a random history on the pipelines of random-graphs.ts: workers that work, fail, crash and come
// back too late; jobs and people that answer; collects, sweeps, resets, cancels, deletions; rows that somebody holds.

import fc from 'fast-check';
import type pg from 'pg';
import { compiled } from '../definitions.ts';
import type { Engine, Row } from '../engine.ts';
import { type Claimed, completed, failed, released, Worker, waiting } from '../worker.ts';
import type { Graph } from './random-graphs.ts';

/** One thing that happens: what, and a number from which all else about it is drawn. */
export interface Step {
  what: What;
  roll: number;
}

const weights = {
  claim: 12,
  report: 16,
  vanish: 2,
  leave: 2,
  renew: 1,
  callback: 6,
  decide: 4,
  collectChildren: 5,
  sweep: 4,
  clock: 4,
  queue: 4,
  start: 3,
  label: 1,
  metadata: 1,
  cancel: 2,
  retry: 3,
  reset: 3,
  edit: 3,
  skip: 2,
  reset_children: 2,
  start_stage: 2,
  complete_stage: 2,
  fail_stage: 2,
  pause: 1,
  unpause: 1,
  bypass: 1,
  end_bypass: 1,
  take_up: 2,
  remove: 1,
  hold: 2,
  let_go: 2,
};

/** The other events of rows that show their status in one column, and existed before. */
const ofRows = { adopt: 6, begin: 4, due: 4, old_value: 3, insert: 3, redefine: 4 };
type What = keyof typeof weights | keyof typeof ofRows;

/** Histories of up to `maxLength` steps; with `rows` also of what happens to rows that were there before. */
export const histories = (maxLength: number, minLength = 0, rows = false): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.record({
      what: fc.oneof(
        ...Object.entries({ ...weights, ...(rows ? ofRows : {}) }).map(([what, weight]) => ({
          weight,
          arbitrary: fc.constant(what as What),
        })),
      ),
      roll: fc.nat(999_999),
    }),
    { maxLength, minLength, size: 'max' },
  );

const ofMachines: What[] = ['claim', 'report', 'leave', 'renew', 'callback', 'collectChildren', 'sweep'];

/**
 * Whether a step may end so. People hear refusals, and here they give up on rows that somebody holds; machines are
 * answered item by item and wait for nobody. A worker that has slept for an hour is forgotten (MR006).
 */
function isRefusal(error: unknown, what: What): boolean {
  const { code } = error as { code?: string };
  if (ofMachines.includes(what)) return code === 'MR006';
  return Boolean(code?.startsWith('MR')) || code === '55P03';
}

interface Held {
  worker: Worker;
  item: Claimed;
}

/** Spawns the children of a map attempt. */
export async function spawn(
  worker: Worker,
  item: Claimed,
  keys: string[],
  last: boolean,
): Promise<{ status: string; fan_out: number }> {
  const items = JSON.stringify(keys.map((key) => ({ key })));
  const values = [worker.id, item.attempt, item.token, items, last];
  const { rows } = await worker.client.query('select public.millrace_spawn($1, $2, $3, $4, $5) as answer', values);
  return rows[0].answer;
}

export class Player {
  readonly #graph: Graph;
  readonly #owner: pg.Client;
  readonly #service: pg.Client;
  readonly #holder: pg.Client;
  readonly #workers: Worker[] = [];
  #held: Held[] = [];
  #roll = 0;
  /** Attempts whose completion was accepted, with the results that were sent. */
  readonly accepted = new Map<number, unknown>();

  private constructor(graph: Graph, sessions: [pg.Client, pg.Client, pg.Client]) {
    this.#graph = graph;
    [this.#owner, this.#service, this.#holder] = sessions;
  }

  /** A player with sessions of its own, which give up at once on what is locked: only people may ever wait. */
  static async of(engine: Engine, graph: Graph, lockTimeout = '20ms'): Promise<Player> {
    const sessions = await Promise.all(
      ['postgres', 'service_role', 'postgres'].map((role) => engine.database.connect(role)),
    );
    for (const session of sessions) await session.query(`set lock_timeout = '${lockTimeout}'`);
    return new Player(graph, sessions as [pg.Client, pg.Client, pg.Client]);
  }

  /** Takes one step. Throws when it is answered with anything but a refusal of the engine's own. */
  async play({ what, roll }: Step): Promise<void> {
    this.#roll = roll;
    try {
      await this.#step(what);
    } catch (error) {
      if (!isRefusal(error, what)) throw error;
    }
  }

  /** Lets go of the rows it holds and closes its sessions. */
  async end(): Promise<void> {
    await this.#holder.query('rollback');
    await Promise.all([this.#owner, this.#service, this.#holder].map((session) => session.end()));
  }

  /** Draws a number below a bound. */
  #draw(bound: number): number {
    const drawn = this.#roll % bound;
    this.#roll = Math.floor(this.#roll / bound);
    return drawn;
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list.length === 0 ? undefined : list[this.#draw(list.length)];
  }

  #stage(): [string, string, string] {
    const all = (['flow', 'parts', 'sub', 'beside'] as const).flatMap((pipeline) =>
      this.#graph[pipeline].map((stage) => [pipeline, stage] as const),
    );
    const [pipeline, stage] = this.#pick<readonly [string, Row]>(all) ?? ['flow', {}];
    return [pipeline, stage.name as string, (stage.kind as string | undefined) ?? 'function'];
  }

  async #step(what: What): Promise<unknown> {
    switch (what) {
      case 'claim':
        return this.#claim();
      case 'report':
        return this.#report();
      case 'vanish':
        this.#held = this.#held.filter(({ worker }) => worker !== this.#workers[0]);
        return this.#workers.shift();
      case 'leave':
        return this.#pick(this.#workers)?.leave(this.#draw(2) === 0);
      case 'renew':
        return this.#pick(this.#workers)?.renew();
      case 'callback':
        return this.#callback();
      case 'decide':
        return this.#onOne(
          'public.millrace_decisions',
          'attempt_id',
          'closed_at is null',
          `public.millrace_decide(?, '{"ok": true}')`,
        );
      case 'collectChildren':
        return this.#service.query('select public.millrace_collect_children($1)', [await this.#tallied()]);
      case 'sweep':
        return this.#owner.query('select millrace.sweep()');
      case 'clock':
        return this.#owner.query(`update public.test_clock set at = at + $1 * interval '1 second'`, [
          this.#pick([1, 11, 61, 210]),
        ]);
      case 'hold':
        return this.#hold();
      case 'let_go':
        return this.#holder.query('commit');
      case 'adopt':
      case 'begin':
      case 'redefine':
        return this.#ofPipeline(what);
      case 'due':
      case 'old_value':
      case 'insert':
        return this.#ofRow(what);
      default:
        return this.#decree(what);
    }
  }

  /** A person adopts a portion, begins rows that wait at a gate, or gives the pipeline another definition. */
  async #ofPipeline(what: 'adopt' | 'begin' | 'redefine'): Promise<unknown> {
    const values: Record<typeof what, () => unknown[]> = {
      adopt: () => [this.#draw(4) === 0, 1 + this.#draw(2)],
      begin: () => [this.#pick(['10', '20']), 1 + this.#draw(3)],
      redefine: () => [compiled(this.#pick(this.#graph.definitions ?? []))],
    };
    const calls = {
      adopt: `* from millrace.adopt('flow', 'was', 'public.meant', p_dry_run => $1, p_portion => $2)`,
      begin: `millrace.begin('flow', $1, $2)`,
      redefine: 'millrace.define($1)',
    };
    return this.#owner.query(`select ${calls[what]}`, values[what]());
  }

  /** A person says when a row is due, writes its old status, or inserts one. */
  async #ofRow(what: 'due' | 'old_value' | 'insert'): Promise<unknown> {
    const was = this.#pick([...oldValues, null]);
    if (what === 'insert')
      return this.#owner.query('insert into public.items (label, was) values ($1, $2)', ['no', was]);
    const value = what === 'due' ? `millrace.now() + ${this.#pick([-1, 0, 70])} * interval '1 second'` : '$2';
    return this.#owner.query(
      `update public.items set ${what === 'due' ? 'check_at' : 'was'} = ${value}
       where id = (select id from public.items order by id offset $1 limit 1)`,
      what === 'due' ? [this.#draw(6)] : [this.#draw(6), was],
    );
  }

  async #tallied(): Promise<unknown> {
    const { rows } = await this.#owner.query(
      'select array(select distinct fan_out_id from millrace.child_tallies) as ids',
    );
    return rows[0].ids;
  }

  async #claim(): Promise<void> {
    const [pipeline, stage, kind] = this.#stage();
    if (['manual', 'pipeline'].includes(kind)) return;
    let worker = this.#workers.find((one) => one.stage === stage && one.pipeline === pipeline);
    if (!worker || this.#draw(3) === 0) {
      worker = Worker.over(this.#service, stage, pipeline, this.#pick(hosts));
      this.#workers.push(worker);
    }
    const { batch } = await worker.claim(1 + this.#draw(3));
    for (const item of batch) this.#held.push({ worker, item });
  }

  async #report(): Promise<void> {
    const held = this.#pick(this.#held);
    if (!held) return;
    const { worker, item } = held;
    const kind = this.#kindOf(worker);
    const report = kind === 'map' ? await this.#spawn(held) : this.#outcome(item, kind);
    if (!report) return;
    const [first] = (await worker.complete([report])).items;
    if (first?.verdict === 'busy') return;
    if (first?.verdict === 'accepted' && report.outcome === 'completed') this.accepted.set(item.attempt, report.result);
    if (this.#draw(4) === 0) {
      const [again] = (await worker.complete([report], 0, worker.seq)).items;
      if (again?.verdict === 'accepted') throw new Error(`what was said of attempt ${item.attempt} was accepted twice`);
    }
    // Now and then it says something more, too late.
    if (this.#draw(5) > 0) this.#held = this.#held.filter((other) => other !== held);
  }

  #kindOf(worker: Worker): string {
    const stages = this.#graph[worker.pipeline as 'flow' | 'parts' | 'sub' | 'beside'];
    return (stages.find(({ name }) => name === worker.stage)?.kind as string | undefined) ?? 'function';
  }

  #outcome(item: Claimed, kind: string): Row {
    const roll = this.#draw(20);
    if (roll < 3) return failed(item, { permanent: roll === 0 });
    if (roll < 4) return released(item);
    if (kind === 'external' && roll < 14) return waiting(item, `job-${item.submission}`);
    return completed(item, { ok: this.#draw(3) > 0, attempt: item.attempt });
  }

  /** Spawns some children; with the last of them the map waits. Sometimes its function fails half-way. */
  async #spawn({ worker, item }: Held): Promise<Row | undefined> {
    const roll = this.#draw(10);
    if (roll === 0) return failed(item, { permanent: this.#draw(2) === 0 });
    if (roll === 1) return released(item);
    const last = roll > 3;
    const keys = last ? ['1', '2', '3', '4'].slice(0, this.#draw(5)) : ['2', '4'];
    try {
      const { status, fan_out: fanOut } = await spawn(worker, item, keys, last);
      return last && status === 'spawned' ? waiting(item, `${fanOut}`, 'children') : undefined;
    } catch (error) {
      // A row that is another's child already.
      if ((error as { code?: string }).code !== 'MR004') throw error;
      return failed(item);
    }
  }

  async #callback(): Promise<void> {
    const { rows } = await this.#owner.query(
      `select coalesce(submission_id, id)::int as submission, service, job_id from millrace.attempts
       where service = 'scraper' and (state = 'waiting' or state = 'failed' and error ->> 'code' = 'deadline') order by id`,
    );
    const job = this.#pick(rows);
    if (!job) return;
    const end =
      this.#draw(4) > 0
        ? { outcome: 'completed', result: { ok: true } }
        : { outcome: 'failed', error: { code: 'http_500', message: 'no' } };
    const items = JSON.stringify([{ ...job, ...end }]);
    for (let times = 1 + this.#draw(2); times > 0; times--) {
      await this.#service.query('select public.millrace_resume($1)', [items]);
    }
  }

  /** Calls a function on one row of a table, drawn in order of its key, when there is one. */
  async #onOne(table: string, key: string, condition: string, call: string): Promise<void> {
    const { rows } = await this.#owner.query(`select ${key} as key from ${table} where ${condition} order by 1`);
    const row = this.#pick(rows);
    if (row) await this.#owner.query(`select ${call.replace('?', '$1')}`, [row.key]);
  }

  /** The verb that a person uses on a run, a stage or a row. */
  async #decree(what: What): Promise<unknown> {
    const [pipeline, stage] = this.#stage();
    const table = pipeline === 'parts' ? 'parts' : 'items';
    const onRun = (call: string, condition = 'true') =>
      this.#onOne(
        'millrace.runs',
        'id',
        `${condition} and pipeline_id = (select id from millrace.pipelines where name = '${pipeline}')`,
        call,
      );
    const onRow = async (statement: string) => {
      const { rows } = await this.#owner.query(`select id from public.${table} order by id`);
      const row = this.#pick(rows);
      return row && this.#owner.query(statement, [row.id]);
    };
    switch (what) {
      case 'queue':
        if (this.#graph.projection === 'status') return this.#writeValue(onRow);
        if (this.#graph.projection === 'none') {
          return onRow(`select millrace.start('${pipeline}', $1, '${stage}', p_restart => true)`);
        }
        return onRow(`update public.${table} set ${stage}_status = 'queued' where id = $1`);
      case 'start':
        return onRow(`select millrace.start('${pipeline}', $1)`);
      case 'label':
        return onRow(`update public.${table} set label = case label when 'yes' then 'no' else 'yes' end where id = $1`);
      case 'metadata':
        return this.#owner.query(
          'update public.items set metadata = $1 where id = (select id from public.items order by id offset $2 limit 1)',
          [this.#pick(metadata), this.#draw(4)],
        );
      case 'remove':
        await onRow(`delete from public.${table} where id = $1`);
        return this.#owner.query(`insert into public.items (label) values ('yes')`);
      case 'cancel':
        return onRun('millrace.cancel(?)', `status = 'running'`);
      case 'retry':
        return onRun('millrace.retry(?)', `status in ('failed', 'cancelled')`);
      case 'reset':
        return onRun(this.#draw(4) === 0 ? 'millrace.reset(?)' : `millrace.reset(?, '${stage}')`);
      case 'edit':
        return onRun(`millrace.act(${editOf(stage, this.#draw(3) > 0)})`);
      case 'complete_stage':
        return onRun(`millrace.complete_stage(?, '${stage}', '{"ok": true}')`, `status = 'running'`);
      case 'fail_stage':
        return onRun(`millrace.fail_stage(?, '${stage}', 'no', ${this.#draw(2) === 0})`, `status = 'running'`);
      case 'pause':
      case 'unpause':
        return this.#owner.query(
          `select millrace.${what}('${pipeline}', ${this.#draw(3) === 0 ? 'null' : `'${stage}'`})`,
        );
      case 'bypass':
        return this.#owner.query(`select millrace.bypass('${pipeline}', '${stage}', 'a try')`);
      case 'end_bypass':
      case 'take_up':
        return this.#owner.query(`select millrace.${what}(p.name, s.name) from millrace.stages s
          join millrace.pipelines p on p.id = s.pipeline_id
          where ${what === 'take_up' ? 'not s.bypassed and exists (select from millrace.bypassed b where b.stage_id = s.id)' : 's.bypassed'}
          order by s.id offset ${this.#draw(3)} limit 1`);
      default:
        return onRun(`millrace.${what}(?, '${stage}')`);
    }
  }

  /** A person writes a value, mostly one that may follow. */
  async #writeValue(onRow: (statement: string) => Promise<unknown>): Promise<unknown> {
    const value = `(select v.value from millrace.status_values v where v.pipeline_id = p.id order by v.sort_order offset ${this.#draw(30)} limit 1)`;
    const next = `(select m.to_value from millrace.version_moves m where m.version_id = p.current_version_id and m.by = 'person'
      and m.from_value is not distinct from i.code::text order by m.to_value, m.means offset ${this.#draw(4)} limit 1)`;
    const chosen = this.#draw(4) === 0 ? value : next;
    return onRow(
      `update public.items i set code = ${chosen}::smallint from millrace.pipelines p where p.name = 'flow' and i.id = $1`,
    );
  }

  /** A user's transaction that holds one row, until it lets go. */
  async #hold(): Promise<void> {
    await this.#holder.query('commit; begin');
    const table = this.#draw(2) === 0 ? 'items' : 'parts';
    await this.#holder.query(
      `update public.${table} set label = label where id = (select id from public.${table} order by id offset $1 limit 1)`,
      [this.#draw(4)],
    );
  }
}

/** The request, as SQL, to edit a stage's result in the run \`?\`, or on a copy of it. */
const editOf = (stage: string, copy: boolean) => `(
  select jsonb_build_object('verb', 'edit', 'run', r.id, 'stage', s.name, 'copy', ${copy}, 'result', '{"ok": true}'::jsonb,
    'attempt', (select a.id from millrace.newest_attempt(r.id, s.id) a))
  from millrace.runs r join millrace.stages s on s.pipeline_id = r.pipeline_id and s.name = '${stage}' where r.id = ?)`;

/** The possible old statuses; public.meant() says what they mean. */
export const oldValues = ['new', 'next', 'at_work', 'ready', 'done', 'broken'];
const metadata = ['{"org": "a"}', '{"org": {"a": 1}}', '[]', '"a"', 'null', null];
const hosts = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];
