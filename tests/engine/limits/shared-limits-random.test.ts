// Random work at stages of two pipelines under one limit: after each step it is exceeded nowhere, and in the end all gets done.
import fc from 'fast-check';
import { expect } from 'vitest';
import { test } from '../../support/engine/shared-limits.ts';
import type { Engine } from '../../support/engine.ts';
import { huntLength } from '../../support/hunt-length.ts';
import { jobEnd } from '../../support/sessions.ts';
import { type Claimed, completed, failed, released, resume, Worker, waiting } from '../../support/worker.ts';

const spending = { usd: 0.8, per_seconds: 60 };
const declared = { max_in_flight: 6, rate: { count: 30, per_seconds: 10, burst: 8 }, spending };
const price = 0.1;
const usage = { cost_usd: price };

const verbs = ['complete', 'complete', 'fail', 'refuse', 'release', 'wait', 'wait', 'end', 'end', 'cancel', 'throttle'];
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ verb: fc.constant('enqueue'), n: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 7, arbitrary: fc.record({ verb: fc.constant('claim'), n: fc.integer({ min: 1, max: 8 }) }) },
  { weight: 7, arbitrary: fc.record({ verb: fc.constantFrom(...verbs), n: fc.nat(9) }) },
  {
    weight: 4,
    arbitrary: fc.record({ verb: fc.constantFrom('pass', 'sweep', 'leap'), n: fc.integer({ min: 1, max: 3 }) }),
  },
);

class Bench {
  held: { worker: Worker; item: Claimed }[] = [];
  jobs: Claimed[] = [];
  /** The minute in which the price of both stages came to be known. */
  knownIn: number | undefined;

  constructor(
    private readonly engine: Engine,
    private readonly workers: Worker[],
  ) {}

  async act(verb: string, n: number): Promise<void> {
    const { engine } = this;
    if (verb === 'enqueue') await engine.queued(n % 2 ? 'one' : 'uno', n);
    else if (verb === 'claim') {
      const worker = this.workers[n % this.workers.length] as Worker;
      this.held.push(...(await worker.take(n)).map((item) => ({ worker, item })));
    } else if (verb === 'pass') await engine.advance(`${n * 300} milliseconds`);
    else if (verb === 'sweep') await engine.sql.query('select millrace.sweep()');
    // Within the lease.
    else if (verb === 'leap') await engine.advance(`${n * 5} seconds`);
    else if (verb === 'end') {
      const job = this.jobs.shift();
      if (job) await resume(engine, [{ ...jobEnd(job, `job-${job.attempt}`), usage }]);
    } else if (verb === 'cancel') {
      await engine.sql.query(
        `select millrace.cancel(id) from (select id from millrace.runs where status = 'running' order by id offset $1 limit 1) r`,
        [n],
      );
    } else if (verb === 'throttle') {
      await engine.sql.query(
        `select millrace.throttle_limit('model', '{"max_in_flight": 2}', millrace.now() + interval '5 seconds', 'why')`,
      );
    } else await this.report(verb, n);
  }

  async report(verb: string, n: number): Promise<void> {
    const [held] = this.held.splice(n % Math.max(this.held.length, 1), 1);
    if (!held) return;
    const { worker, item } = held;
    if (verb === 'complete') await worker.report({ ...completed(item), usage });
    else if (verb === 'fail') await worker.report({ ...failed(item), usage });
    else if (verb === 'refuse') {
      await worker.report({ ...failed(item, { code: 'rate_limited', retry_after_ms: n * 1000 }), usage });
    } else if (verb === 'release') await worker.report(released(item));
    else if ((await worker.report(waiting(item, `job-${item.attempt}`)))[0] === 'accepted') this.jobs.push(item);
  }

  async check(): Promise<void> {
    const { engine } = this;
    const busy = await engine.value<number>(
      `select count(*)::int from millrace.attempts where state in ('started', 'waiting')`,
    );
    expect(busy, 'in flight').toBeLessThanOrEqual(6);
    const { spent, minute, known } = (
      await engine.rows<{ spent: number; minute: number; known: boolean }>(`
        select (select coalesce(sum((usage ->> 'cost_usd')::float), 0) from millrace.attempts
            where finished_at >= to_timestamp(m * 60)) as spent,
          m::float as minute,
          (select count(distinct stage_id) = 2 from millrace.sums where unit = 'total' and cost_usd > 0 and stage_id > 0) as known
        from floor(extract(epoch from millrace.now()) / 60) m`)
    )[0] as { spent: number; minute: number; known: boolean };
    if (known) this.knownIn ??= minute;
    // Of a stage whose price nobody knows yet one is in flight, and stands for nothing.
    const unknown = this.knownIn !== undefined && this.knownIn < minute ? 0 : 2;
    expect(spent, 'spent in a minute').toBeLessThanOrEqual(spending.usd + unknown * price + 1e-9);
  }

  /** Goes on until no run is left; throws when that never comes. The budget of a minute, which is twelve rounds, ends eight runs. */
  async finish(): Promise<void> {
    for (let round = 0; round < 6 * length; round++) {
      const left = await this.engine.value<number>(`select count(*)::int from millrace.runs where status = 'running'`);
      if (left === 0) return;
      while (this.jobs.length > 0) await this.act('end', 0);
      for (const { worker, item } of this.held.splice(0)) await worker.report({ ...completed(item), usage });
      await this.act('claim', 6);
      await this.act('claim', 7);
      await this.act('leap', 1);
      await this.check();
      if (round % 3 === 0) await this.act('sweep', 0);
    }
    throw new Error('work is left that no claim hands out');
  }
}

const length = huntLength(70, 700);

test.for(Array.from({ length: huntLength(2, 8) }, (_, place) => [place + 1] as const))(
  'whatever happens, no shared limit is exceeded and nothing is forgotten (seed %i)',
  async ([seed], { engine }) => {
    await engine.sql.query(`select millrace.define_limit('model', $1)`, [JSON.stringify(declared)]);
    const options = {
      kind: 'external',
      completion: { callback: true, deadline_seconds: 600 },
      limits: { shared: ['model'] },
      retry: { max_attempts: 9, backoff: { kind: 'list', seconds: [1, 5] } },
      max_workers: 10,
      lease_seconds: 3600,
    };
    await engine.pipeline([{ name: 'one', ...options }]);
    await engine.pipeline([{ name: 'uno', ...options }], {}, 'other');
    const workers = [
      await Worker.of(engine, 'one'),
      await Worker.of(engine, 'uno', 'other'),
      await Worker.of(engine, 'one'),
    ];
    const bench = new Bench(engine, workers);
    const [steps] = fc.sample(fc.array(step, { minLength: length, maxLength: length }), { seed, numRuns: 1 });
    for (const { verb, n } of steps ?? []) {
      await bench.act(verb, n);
      await bench.check();
      await engine.expectSound();
    }
    await bench.finish();
  },
);
