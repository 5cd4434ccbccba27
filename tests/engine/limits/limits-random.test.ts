// Random work at a stage with every limit at once: after each step none is exceeded, and in the end all of it gets done.
import fc from 'fast-check';
import { expect } from 'vitest';
import { type Engine, test } from '../../support/engine.ts';
import { huntLength } from '../../support/hunt-length.ts';
import { jobEnd } from '../../support/sessions.ts';
import { type Claimed, completed, failed, released, resume, Worker, waiting } from '../../support/worker.ts';

const limits = {
  max_in_flight: 6,
  concurrency: { column: 'key', limit: 2 },
  rate: { count: 5, per_seconds: 1, burst: 8 },
};

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ verb: fc.constant('enqueue'), n: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 6, arbitrary: fc.record({ verb: fc.constant('claim'), n: fc.integer({ min: 1, max: 6 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      verb: fc.constantFrom('complete', 'fail', 'release', 'wait', 'end', 'cancel', 'start over'),
      n: fc.nat(9),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ verb: fc.constantFrom('pass', 'sweep', 'lose'), n: fc.integer({ min: 1, max: 3 }) }),
  },
);

class Bench {
  held: { worker: Worker; item: Claimed }[] = [];
  jobs: Claimed[] = [];

  constructor(
    private readonly engine: Engine,
    private readonly workers: Worker[],
  ) {}

  async act(verb: string, n: number): Promise<void> {
    const { engine } = this;
    const at = n % Math.max(this.held.length, 1);
    if (verb === 'enqueue') {
      const keys = Array.from({ length: n }, (_, number) => `key-${(n * 7 + number) % 4}`);
      await engine.sql.query(
        `insert into public.items (key, only_status) select k, 'queued' from unnest($1::text[]) k`,
        [keys],
      );
    } else if (verb === 'claim') {
      const worker = this.workers[n % this.workers.length] as Worker;
      this.held.push(...(await worker.take(n)).map((item) => ({ worker, item })));
    } else if (verb === 'pass') await engine.advance(`${n * 300} milliseconds`);
    else if (verb === 'sweep') await engine.sql.query('select millrace.sweep()');
    else if (verb === 'lose') {
      await engine.advance('61 seconds');
      await engine.sql.query('select millrace.sweep()');
      this.held = [];
    } else if (verb === 'end') {
      const job = this.jobs.shift();
      if (job) await resume(engine, [jobEnd(job, `job-${job.attempt}`)]);
    } else if (['cancel', 'start over'].includes(verb)) {
      const ids = await engine.rows<{ id: string; entity_id: string }>(
        `select id, entity_id from millrace.runs where status = 'running' order by id`,
      );
      const run = ids[n % Math.max(ids.length, 1)];
      if (!run) return;
      if (verb === 'cancel') await engine.sql.query('select millrace.cancel($1)', [run.id]);
      else await engine.queue('only', [run.entity_id]);
    } else {
      const [held] = this.held.splice(at, 1);
      if (!held) return;
      const { worker, item } = held;
      if (verb === 'complete') await worker.report(completed(item));
      else if (verb === 'fail') await worker.report(failed(item));
      else if (verb === 'release') await worker.report(released(item));
      else if ((await worker.report(waiting(item, `job-${item.attempt}`)))[0] === 'accepted') this.jobs.push(item);
    }
  }

  async check(): Promise<void> {
    const charged = `select sum(used)::int as used from millrace.limit_uses group by limit_id, key, during`;
    const used = (await this.engine.rows<{ used: number }>(charged)).map((row) => row.used);
    expect(Math.max(0, ...used), 'starts of a key in a window').toBeLessThanOrEqual(3);
    const busy = await this.engine.rows<{ key: string; count: number }>(
      `select i.key, count(*)::int from millrace.attempts a join millrace.runs r on r.id = a.run_id
       join public.items i on i.id::text = r.entity_id where a.state in ('started', 'waiting') group by i.key`,
    );
    expect(Math.max(0, ...busy.map((row) => row.count))).toBeLessThanOrEqual(2);
    expect(busy.reduce((sum, row) => sum + row.count, 0)).toBeLessThanOrEqual(6);
    await this.engine.expectSound();
  }

  /** Goes on until no run is left; throws when that never comes. */
  async finish(): Promise<void> {
    for (let round = 0; round < 300; round++) {
      const left = await this.engine.value<number>(`select count(*)::int from millrace.runs where status = 'running'`);
      if (left === 0) return;
      while (this.jobs.length > 0) await this.act('end', 0);
      for (const { worker, item } of this.held.splice(0)) await worker.report(completed(item));
      await this.act('claim', 6);
      await this.act('pass', 3);
      if (round % 10 === 0) await this.act('lose', 0);
    }
    throw new Error('work is left that no claim hands out');
  }
}

const quota = { column: 'key', starts: { count: 3, per_seconds: 2 } };

const length = huntLength(60, 600);

const seeds = Array.from({ length: huntLength(1, 4) }, (_, place) => place + 1);

test.for([
  ...seeds.map((seed) => [seed, 'without a quota', undefined] as const),
  ...seeds.map((seed) => [seed + 3, 'with a quota', quota] as const),
])(
  'whatever happens, no limit is exceeded and nothing is forgotten (seed %i, %s)',
  async ([seed, , quota], { engine }) => {
    await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
    const retry = { max_attempts: 3, backoff: { kind: 'list', seconds: [1, 5] } };
    const completion = { callback: true, deadline_seconds: 600 };
    const stages = [{ name: 'only', kind: 'external', completion, limits, retry, max_workers: 10 }];
    await engine.define({ ...(await engine.pipeline(stages)), quota });
    const workers = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
    const bench = new Bench(engine, workers);
    const [steps] = fc.sample(fc.array(step, { minLength: length, maxLength: length }), { seed, numRuns: 1 });
    for (const { verb, n } of steps ?? []) {
      await bench.act(verb, n);
      await bench.check();
    }
    await bench.finish();
  },
);
