// A gate whose keys take turns, with stages before and behind it, at which everything happens that may happen to it. After each
// step look() tells what waits, what is behind the gate and what has just passed, for a test to compare with what may be.
import fc from 'fast-check';
import type pg from 'pg';
import type { Engine } from '../engine.ts';
import { type Claimed, completed, failed, released, Worker } from '../worker.ts';

/** Odd ones too: none, empty ones, ones that look like the engine's own marks, ones too long for an index. */
const keys = [
  'a',
  'b',
  '',
  null,
  '*a',
  '0a',
  'Ä',
  'x'.repeat(500),
  `${'x'.repeat(499)}y`,
  'http://a.test/1',
  'http://A.test/2',
];
const columns = [
  { column: 'key' },
  { column: 'key', part: 'value' },
  { column: 'key', part: 'host' },
  { column: 'label' },
];

/** The values of a definition. */
export const shapes = fc.record({
  gate: fc.option(fc.constantFrom(...columns), { freq: 6 }),
  /** The key of the stages behind the gate, unless that is the gate's. */
  other: fc.option(fc.constantFrom(...columns)),
  isSame: fc.integer({ max: 3 }).map((n) => n < 3),
  isRated: fc.boolean(),
  isHeldBack: fc.nat(5).map((n) => n > 0),
  isLimited: fc.nat(12).map((n) => n > 0),
  hasGate: fc.nat(9).map((n) => n > 0),
  midHasKey: fc.nat(4).map((n) => n > 0),
  backlog: fc.integer({ min: 1, max: 4 }),
});
export type Shape = typeof shapes extends fc.Arbitrary<infer T> ? T : never;

const some = (...verbs: string[]) => fc.record({ verb: fc.constantFrom(...verbs), n: fc.nat(99), shape: shapes });
export const steps = fc.oneof(
  { weight: 6, arbitrary: some('bring') },
  { weight: 6, arbitrary: some('sweep', 'sweep', 'side by side', 'first', 'first') },
  { weight: 8, arbitrary: some('claim', 'claim', 'complete', 'complete', 'complete', 'fail', 'release', 'lose') },
  { weight: 4, arbitrary: some('pass', 'pass', 'change', 'change all', 'hold', 'let go') },
  { weight: 3, arbitrary: some('cancel', 'skip', 'fail gate', 'retry', 'reset', 'start over', 'delete', 'prune') },
  { weight: 3, arbitrary: some('define', 'pause', 'bypass', 'throttle', 'take up') },
);

/** Some of what was seen of the bench after a step; counts are by key. */
export interface Seen {
  behind: Record<string, number>;
  waiting: Record<string, number>;
  /** The keys of those that passed in this step: under which they waited, and under which they came to the next stage. */
  passed: { left: string; landed: string }[];
  /** The rows that came to the last stage in this step with another key than it had at the one before. */
  drifted: Record<string, number>;
  /** Whether something waits under a key that its row no longer has. */
  isStale: boolean;
  isOpen: boolean;
}

const isOpen = `(a.state = 'queued' and a.queue_at <= millrace.now() or a.state in ('started', 'waiting'))`;
const gateQueue = `exists (select from millrace.attempts a join millrace.stages s on s.id = a.stage_id
  where s.name = 'gate' and a.run_id = r.id and a.state = 'queued')`;
/** Steps that touch no row which somebody may hold. */
const waitsForNobody = ['bring', 'sweep', 'first', 'claim', 'complete', 'fail', 'release', 'lose', 'pass'];

export class GateBench {
  shape!: Shape;
  isHeld = false;
  /** Whether `mid` is bypassed, which lets through what is not due yet. */
  isBypassed = false;
  readonly #held: { worker: Worker; item: Claimed }[] = [];
  readonly #workers: Worker[] = [];
  #holder: pg.Client | undefined;
  #newest = '0';
  #passed: string[] = [];

  private constructor(
    private readonly engine: Engine,
    private readonly isFirst: boolean,
  ) {}

  /** A bench whose gate is the first stage, or comes after one. */
  static async of(engine: Engine, isFirst: boolean, shape: Shape): Promise<GateBench> {
    const bench = new GateBench(engine, isFirst);
    await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
    await bench.define({ ...shape, hasGate: true });
    for (const stage of ['mid', 'last', 'mid', 'last']) bench.#workers.push(await Worker.of(engine, stage));
    return bench;
  }

  /** Whether the stages behind the gate hold it back, and key by key. */
  get heldBack(): { at: number; byKey: boolean } {
    const { shape } = this;
    const { gate, hasGate, isLimited, midHasKey } = shape;
    const behind = shape.isSame ? gate : shape.other;
    const byKey = gate?.column === behind?.column && (gate?.part ?? 'value') === (behind?.part ?? 'value');
    const at = hasGate && isLimited && this.#isHeldBack(shape) ? shape.backlog : Number.POSITIVE_INFINITY;
    return { at, byKey: !!gate && !!behind && midHasKey && byKey };
  }

  /** The first stage. */
  get #front(): string {
    if (!this.isFirst) return 'first';
    return this.shape.hasGate ? 'gate' : 'mid';
  }

  #isHeldBack = ({ isHeldBack, gate, isRated }: Shape) => isHeldBack || !(gate || isRated);

  async define(shape: Shape): Promise<void> {
    const behind = shape.isSame ? shape.gate : shape.other;
    const limits = {
      ...(shape.gate && { concurrency: shape.gate }),
      ...(shape.isRated && { rate: { count: 3, per_seconds: 5 } }),
      ...(this.#isHeldBack(shape) && { back_pressure: { stage: 'last', backlog: shape.backlog } }),
    };
    const keyed = behind && { limits: { concurrency: { ...behind, limit: 2 } } };
    const before = this.isFirst ? [] : ['first'];
    const retry = { max_attempts: 3, backoff: { kind: 'list', seconds: [1, 5] } };
    await this.engine.pipeline([
      ...before.map((name) => ({ name, max_workers: 10 })),
      ...(shape.hasGate ? [{ name: 'gate', kind: 'gate', needs: before, ...(shape.isLimited && { limits }) }] : []),
      { name: 'mid', needs: shape.hasGate ? ['gate'] : before, max_workers: 10, ...(shape.midHasKey && keyed) },
      { name: 'last', needs: ['mid'], max_workers: 10, retry, ...keyed },
    ]);
    this.shape = shape;
  }

  /** Takes a step; what the engine refuses is no step. */
  async act(verb: string, n: number, shape: Shape = this.shape): Promise<void> {
    if (!waitsForNobody.includes(verb)) await this.#letGo();
    try {
      if (verb === 'define') await this.define(shape);
      else if (['complete', 'fail', 'release'].includes(verb)) await this.#report(verb, n);
      else if (['cancel', 'skip', 'fail gate', 'start over'].includes(verb)) await this.#toRun(verb, n);
      else await this.#actions[verb]?.(n, keys[n % keys.length] as string | null);
    } catch (error) {
      if (!String((error as { code: unknown }).code).startsWith('MR')) throw error;
    }
  }

  #sql = (text: string, values: unknown[] = []) => this.engine.sql.query(text, values);

  readonly #actions: Record<string, (n: number, key: string | null) => Promise<unknown>> = {
    bring: (n) =>
      this.#sql(
        `insert into public.items (key, label, ${this.#front}_status)
         select k, $2, 'queued' from unnest($1::text[]) k, generate_series(1, $3)`,
        [[0, 1, 2, 3].map((place) => keys[(n + place) % keys.length]), String(n % 3), 1 + (n % 3)],
      ),
    first: (n) => this.#finishFirst(1 + (n % 12)),
    sweep: async () => {
      await this.engine.sweepAll();
      // A throttle ends after gates have been passed.
      await this.engine.sweepAll();
    },
    'side by side': (n) => this.#sideBySide(n),
    claim: async (n) => {
      const worker = this.#workers[n % 4] as Worker;
      this.#held.push(...(await worker.take(1 + (n % 6))).map((item) => ({ worker, item })));
    },
    pass: (n) => this.engine.advance(`${1 + (n % 6)} seconds`),
    lose: async () => {
      await this.engine.advance('61 seconds');
      this.#held.length = 0;
    },
    change: (n, key) =>
      this.#sql('update public.items set key = $1, label = $2 where id % 3 = $3', [key, String(n % 2), n % 3]),
    'change all': (n, key) => this.#sql('update public.items set key = $1, label = $2', [key, String(n % 2)]),
    hold: (n) => this.#hold(n % 4),
    delete: (n) =>
      this.#sql('delete from public.items where id = (select id from public.items order by id offset $1 limit 1)', [n]),
    prune: async () => {
      await this.#sql(`update millrace.runs set finished_at = finished_at - interval '400 days'`);
      await this.#sql('select millrace.prune()');
    },
    pause: (n) =>
      this.#sql(`select millrace.${n % 8 < 4 ? 'pause' : 'unpause'}('flow', $1)`, [
        ['gate', 'gate', 'mid', 'last'][n % 4],
      ]),
    bypass: async () => {
      await this.#sql(
        this.isBypassed ? `select millrace.end_bypass('flow', 'mid')` : `select millrace.bypass('flow', 'mid', 'why')`,
      );
      this.isBypassed = !this.isBypassed;
    },
    'take up': () => this.#sql(`select millrace.take_up('flow', 'mid', 3)`),
    throttle: (n) =>
      this.#sql(
        `select millrace.throttle('flow', $1, '{"rate": {"count": 1, "per_seconds": 1}}', millrace.now() + interval '9 seconds', 'why')`,
        [n % 2 ? 'gate' : 'last'],
      ),
    retry: () => this.#sql('select millrace.retry(run_id) from millrace.dead_letters limit 3'),
    reset: () =>
      this.#sql(
        `select millrace.reset(id, 'gate') from (
           select max(id) as id from millrace.runs where status = 'completed' group by entity_id order by 1 limit 2) r`,
      ),
  };

  async #finishFirst(limit: number): Promise<void> {
    if (this.isFirst) return;
    const worker = await Worker.of(this.engine, 'first');
    await worker.complete((await worker.take(limit)).map((item) => completed(item)));
    await worker.leave();
    this.engine.database.giveBack(worker.client);
  }

  /** While somebody who has passed gates has not committed, a worker reports, rows come to the gate, and another sweeps. */
  async #sideBySide(n: number): Promise<void> {
    const other = await this.engine.database.connect();
    await other.query('begin');
    await other.query('select millrace.sweep_gates()');
    await this.#report('complete', n);
    await this.#finishFirst(1 + (n % 12));
    await this.#sql('select millrace.sweep()');
    await other.query('commit');
    this.engine.database.giveBack(other);
  }

  async #report(verb: string, n: number): Promise<void> {
    const [held] = this.#held.splice(n % Math.max(this.#held.length, 1), 1);
    const item = held?.item as Claimed;
    await held?.worker.report(verb === 'complete' ? completed(item) : verb === 'fail' ? failed(item) : released(item));
  }

  async #toRun(verb: string, n: number): Promise<void> {
    const isAtGate = verb === 'skip' || verb === 'fail gate' ? gateQueue : 'true';
    const runs = await this.engine.rows<{ id: string; entity_id: string }>(
      `select id, entity_id from millrace.runs r where status = 'running' and ${isAtGate} order by id`,
    );
    const run = runs[n % Math.max(runs.length, 1)];
    if (!run) return;
    if (verb === 'start over')
      await this.engine.queue(n % 3 && this.shape.hasGate ? 'gate' : this.#front, [run.entity_id]);
    else if (verb === 'cancel') await this.#sql('select millrace.cancel($1)', [run.id]);
    else if (verb === 'skip') await this.#sql(`select millrace.skip($1, 'gate')`, [run.id]);
    else await this.#sql(`select millrace.fail_stage($1, 'gate', 'no')`, [run.id]);
  }

  /** Another session holds rows that wait at the gate. */
  async #hold(offset: number): Promise<void> {
    this.#holder = await this.engine.database.connect();
    this.isHeld = true;
    await this.#holder.query('begin');
    await this.#holder.query(
      `select from public.items where id in (
         select id from public.items where gate_status = 'queued' order by id offset $1 limit 3) for update`,
      [offset],
    );
  }

  async #letGo(): Promise<void> {
    if (!this.#holder) return;
    await this.#holder.query('rollback');
    this.engine.database.giveBack(this.#holder);
    this.#holder = undefined;
    this.isHeld = false;
  }

  async look(verb: string): Promise<Seen> {
    const { engine } = this;
    const passed = await engine.rows<{ id: string; left: string; landed: string }>(
      `select a.id, coalesce(substr(a.concurrency_group, 2), '') as left, coalesce(substr((
           select l.concurrency_group from millrace.attempts l where l.run_id = a.run_id and l.id > a.id order by l.id limit 1
         ), 2), '') as landed
       from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where s.name = 'gate' and a.state = 'completed' and a.id <> all ($1)`,
      [this.#passed],
    );
    this.#passed.push(...passed.map(({ id }) => id));
    const drifted = await this.#counts(
      `s.name = 'last' and ${isOpen} and a.id > ${this.#newest} and a.concurrency_group <> (
         select m.concurrency_group from millrace.attempts m join millrace.stages t on t.id = m.stage_id and t.name = 'mid'
         where m.run_id = a.run_id order by m.id desc limit 1)`,
    );
    this.#newest = await engine.value('select coalesce(max(id), 0) from millrace.attempts');
    const [gate] = await engine.rows<Pick<Seen, 'isStale' | 'isOpen'>>(
      `select s.enabled as "isOpen", exists (
         select from millrace.attempts a where s.has_groups and a.stage_id = s.id and a.state = 'queued'
           and a.concurrency_group is distinct from (millrace.groups_of_runs(s, array[a.run_id]))[1]) as "isStale"
       from millrace.stages s where s.name = 'gate'`,
    );
    return {
      behind: await this.#counts(`s.name in ('mid', 'last') and ${isOpen}`),
      waiting: await this.#counts(`s.name = 'gate' and a.state = 'queued'`),
      // Rows that take_up() starts behind the gate remember that they had passed it.
      passed: verb === 'take up' ? [] : passed,
      drifted,
      isStale: gate?.isStale ?? false,
      isOpen: (gate?.isOpen ?? false) && !this.isHeld,
    };
  }

  async #counts(where: string): Promise<Record<string, number>> {
    const rows = await this.engine.rows<{ key: string; n: number }>(
      `select coalesce(substr(a.concurrency_group, 2), '') as key, count(*)::int as n
       from millrace.attempts a join millrace.stages s on s.id = a.stage_id where ${where} group by 1`,
    );
    return Object.fromEntries(rows.map(({ key, n }) => [key, n]));
  }

  /** How many more the gate's rate lets pass now. */
  tokens(): Promise<number> {
    return this.engine.value(
      `select coalesce(min((millrace.room_in(l, '')).room), 1e9)::float from millrace.limits l
       join millrace.stages s on s.id = l.stage_id where s.name = 'gate' and l.limits ? 'rate'`,
    );
  }

  /** Lets everything go on. */
  async open(): Promise<void> {
    await this.#letGo();
    if (this.isBypassed) await this.act('bypass', 0);
    for (const n of [4, 6, 7]) await this.act('pause', n);
  }

  /** Works for a while at every stage; returns how many runs are left. */
  async work(round: number): Promise<number> {
    await this.#finishFirst(12);
    while (this.#held.length > 0) await this.act('complete', 0);
    for (const worker of [20, 5, 2, 11]) await this.act('claim', worker);
    await this.act('pass', 5);
    if (round % 10 === 9) await this.act('lose', 0);
    // The progress has been seen by then; with a backlog of one, it would take long.
    if (round === 20) await this.define({ ...this.shape, isLimited: false });
    await this.act('sweep', 0);
    return this.engine.value(`select count(*)::int from millrace.runs where status = 'running'`);
  }
}
