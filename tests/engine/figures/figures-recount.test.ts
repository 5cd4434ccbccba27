// Figures against a recount: after random histories, in every minute and hour, whatever was pruned or deleted since.
// FIGURES_SEED=… plays the same again.
import fc from 'fast-check';
import { expect } from 'vitest';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { completed, failed, released, Worker } from '../../support/worker.ts';

const seed = Number(process.env.FIGURES_SEED ?? Date.now() % 1_000_000_000);
const numRuns = Number(process.env.SOAK_FIGURES ?? 3);
const steps = [
  'queue',
  'work',
  'work',
  'work',
  'cancel',
  'delete',
  'retry',
  'reset',
  'sweep',
  'sweep',
  'clock',
  'clock',
  'prune',
  'crash',
];
const histories = fc.array(fc.record({ what: fc.constantFrom(...steps), roll: fc.nat(9999) }), {
  minLength: 40,
  maxLength: 60,
  size: 'max',
});

/** Keeps every attempt that is deleted, so that a recount can take it along. */
const keepDeleted = `
  create table public.deleted as table millrace.attempts with no data;
  create function public.keep() returns trigger language plpgsql as $$ begin insert into public.deleted select old.*; return null; end $$;
  create trigger keep after delete on millrace.attempts for each row execute function public.keep();
  create view public.recount as
  select a.stage_id, date_trunc('hour', a.finished_at, 'UTC') as hour, date_trunc('minute', a.finished_at, 'UTC') as minute,
    count(*) filter (where a.state = 'completed') as completed, count(*) filter (where a.state = 'failed') as failed,
    count(*) filter (where a.state = 'skipped') as skipped, count(*) filter (where a.state = 'cancelled') as cancelled,
    count(*) filter (where a.state in ('completed', 'failed') and a.started_at is not null) as measured,
    sum(extract(epoch from a.finished_at - a.started_at) * 1000) filter (where a.state in ('completed', 'failed')) as run_ms,
    coalesce(sum((a.usage ->> 'cost_usd')::numeric), 0) as cost
  from (table millrace.attempts union all table public.deleted) a
  where a.state in ('completed', 'failed', 'skipped', 'cancelled')
    -- A result that a run took over from another is no event of its own.
    and not exists (select from (table millrace.attempts union all table public.deleted) o where o.id = a.parent_id and o.run_id <> a.run_id)
  group by 1, 2, 3;
  create view public.told as
  select m.stage_id, m.at as %unit, sum(m.n) filter (where m.outcome = 'completed') as completed,
    sum(m.n) filter (where m.outcome in ('failed', 'retried')) as failed,
    sum(m.n) filter (where m.outcome = 'skipped') as skipped, sum(m.n) filter (where m.outcome = 'cancelled') as cancelled,
    sum((select sum(r) from unnest(m.runs) r)) as measured, sum(m.run_ms) as run_ms, sum(m.cost_usd) as cost_usd
  from millrace.sums m where m.unit = '%unit' and m.stage_id <> 0 and m.outcome in ('completed', 'failed', 'retried', 'skipped', 'cancelled')
  group by 1, 2`;

/** The costs of hours by model and tenant, where they differ from the recount. */
const wronglySpent = `
  select 'model and tenant', coalesce(s.stage_id, r.stage_id), coalesce(s.at, r.at), to_jsonb(s), to_jsonb(r)
  from (select * from millrace.costs where unit = 'hour') s
  full join (
    select a.stage_id, date_trunc('hour', a.finished_at, 'UTC') as at, a.usage ->> 'model' as model, 'acme' as tenant,
      sum((a.usage ->> 'cost_usd')::numeric) as usd
    from (table millrace.attempts union all table public.deleted) a
    where a.usage ? 'cost_usd'
      and not exists (select from (table millrace.attempts union all table public.deleted) o where o.id = a.parent_id and o.run_id <> a.run_id)
    group by 1, 2, 3) r using (stage_id, at, model, tenant)
  where s.usd is distinct from r.usd
    -- Hours are kept for three days.
    and at > (select millrace.now() - interval '70 hours')`;

/** The stages' figures by the minute and by the hour, where they differ from the recount. */
async function differences(engine: Engine): Promise<Row[]> {
  const counts = ['completed', 'failed', 'skipped', 'cancelled', 'measured']
    .map((name) => `coalesce(sum(${name}), 0)::int as ${name}`)
    .join();
  const differing = (time: string) => `
    select '${time}' as of, coalesce(t.stage_id, r.stage_id) as stage_id, coalesce(t.at, r.at) as at, to_jsonb(t) as told, to_jsonb(r) as recount
    from (select stage_id, ${time} as at, ${counts}, round(sum(run_ms)::numeric) as ms, sum(cost_usd)::float8 as cost from public.told_${time} group by 1, 2) t
    full join (select stage_id, ${time} as at, ${counts}, coalesce(round(sum(run_ms)), 0) as ms, sum(cost)::float8 as cost from public.recount group by 1, 2) r
      on r.stage_id = t.stage_id and r.at = t.at
    where to_jsonb(t) is distinct from to_jsonb(r)`;
  return engine.rows(`${differing('minute')} union all ${differing('hour')} union all ${wronglySpent}`);
}

async function play(engine: Engine, worker: Map<string, Worker>, { what, roll }: { what: string; roll: number }) {
  const stage = ['one', 'two', 'three'][roll % 3] as string;
  const onRun = (call: string, status: string) =>
    engine.rows(
      `select ${call} from (select r.id from millrace.runs r where r.status = any ($1) order by r.id offset $2 limit 1) r`,
      [status.split(' '), roll % 4],
    );
  switch (what) {
    case 'queue':
      return engine.queued(stage === 'three' ? 'one' : stage, 1 + (roll % 5)).catch(() => {});
    case 'work': {
      const held = worker.get(stage) ?? (await Worker.of(engine, stage));
      worker.set(stage, held);
      const items = await held.take(1 + (roll % 4));
      await engine.advance(`${[0.02, 1, 50][roll % 3]} seconds`);
      return held.complete(
        items.map((item, place) => {
          const kind = (roll + place) % 6;
          if (kind === 0) return { ...failed(item, { permanent: true }), usage: { cost_usd: 0.5, model: 'a' } };
          if (kind === 1) return failed(item, { code: 'http_503' });
          if (kind === 2 && roll % 2) return released(item);
          return { ...completed(item), usage: { cost_usd: 0.25, model: 'ab'[roll % 2] } };
        }),
      );
    }
    case 'cancel':
      return onRun('millrace.cancel(r.id)', 'running');
    case 'delete':
      return engine.rows('delete from public.items where id = (select min(id) from public.items)');
    case 'retry':
    case 'reset':
      return onRun(`millrace.${what}(r.id)`, 'failed cancelled').catch(() => {});
    case 'clock':
      return engine.advance(['1 second', '59 seconds', '10 minutes', '59 minutes'][roll % 4] as string);
    case 'prune':
      return engine.sql.query(`begin; update millrace.runs set finished_at = finished_at - interval '1 year' where finished_at is not null;
        select millrace.prune(); commit`);
    case 'crash':
      return engine.sql.query('begin; select millrace.sweep(); rollback');
    default:
      return engine.sql.query('select millrace.sweep()');
  }
}

test('figures are what a recount says, in every minute and hour', { timeout: 200_000 }, async ({ engine }) => {
  console.info(`FIGURES_SEED=${seed}`);
  await engine.pipeline(
    chain(['one', 'two', 'three'], {
      retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [5] } },
      max_workers: 20,
    }),
  );
  const [kept, told] = keepDeleted.split('create view public.told as');
  await engine.sql.query(kept as string);
  for (const time of ['minute', 'hour']) {
    const view = (told as string).replaceAll('%unit', time);
    await engine.sql.query(`create view public.told_${time} as ${view}`);
  }
  await engine.sql.query(`update millrace.settings set value = '9999' where name = 'minutes_hours';
    create function public.name_tenant() returns trigger language plpgsql as $$ begin new.quota_key := 'acme'; return new; end $$;
    create trigger name_tenant before insert on millrace.runs for each row execute function public.name_tenant()`);
  for (const history of fc.sample(histories, { seed, numRuns })) {
    const workers = new Map<string, Worker>();
    for (const step of history) {
      await play(engine, workers, step);
      await engine.expectSound();
    }
    for (const worker of workers.values()) await worker.leave();
    await engine.sql.query('select millrace.sweep()');
    expect(await differences(engine)).toEqual([]);
  }
});

test('sessions that work and sweep at once leave figures that are what a recount says', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two'], { max_workers: 20 }));
  await engine.queued('one', 120);
  let over = false;
  const sweeping = [1, 2].map(async () => {
    const client = await engine.database.connect();
    while (!over) await client.query('select millrace.add_pulses(3)');
  });
  const working = ['one', 'one', 'two', 'two'].map(async (stage) => {
    const worker = await Worker.of(engine, stage);
    for (let idle = 0; idle < 40; ) {
      const items = await worker.take(5);
      idle = items.length === 0 ? idle + 1 : 0;
      if (items.length > 0) await worker.complete(items.map((item) => completed(item)));
    }
  });
  await Promise.all(working).finally(() => {
    over = true;
  });
  await Promise.all(sweeping);
  await engine.expectSound();
  await engine.sql.query('select millrace.sweep()');
  const counts = `select s.name, t.n::int as completed from millrace.sums t join millrace.stages s on s.id = t.stage_id
     where t.unit = 'total' and t.outcome = 'completed' order by s.id`;
  const left = await engine.value<number>(`select count(*)::int from millrace.attempts where state <> 'completed'`);
  if (left === 0) {
    expect(await engine.rows(counts)).toEqual([
      { name: 'one', completed: 120 },
      { name: 'two', completed: 120 },
    ]);
  }
});
