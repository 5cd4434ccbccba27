// Random graphs and random histories against the real database. A case that fails is printed with its seed and path:
// GRAPHS_SEED=… GRAPHS_PATH=… plays it again, GRAPHS_SHRINK=1 beside them looks for a smaller one. `npm run soak` plays
// thousands.
import fc from 'fast-check';
import pg from 'pg';
import { expect } from 'vitest';
import { invariantBreaches } from '../support/engine/planned-invariants.ts';
import { expectOver, expectShown, finishAll } from '../support/engine/random-ending.ts';
import { defineGraph, graphs } from '../support/engine/random-graphs.ts';
import { histories, Player } from '../support/engine/random-history.ts';
import { type Engine, test } from '../support/engine.ts';

const numRuns = Number(process.env.SOAK_GRAPHS ?? 5);
const seed = process.env.GRAPHS_SEED ? Number(process.env.GRAPHS_SEED) : Date.now() % 1_000_000_000;
// Beside the invariants: an attempt of a stage with a bound carries the time at which its execution is late.
const broken = `
  select 'it is late at another time' as rule, a.run_id, a.id, s.name from millrace.attempts a join millrace.stages s on s.id = a.stage_id
  where a.state in ('queued', 'started', 'waiting')
    and a.late_at is distinct from s.sla + (select f.created_at from millrace.attempts f
      where f.run_id = a.run_id and f.stage_id = a.stage_id and f.number = a.number - a.retry_count)
  union all
  select 'a child has its parent''s metadata', c.id, null, format('%s, not %s', c.metadata_id, r.metadata_id) from millrace.runs c
  join millrace.pipelines p on p.id = c.pipeline_id and p.metadata_column is null
  join millrace.fan_outs f on f.id = c.fan_out_id join millrace.runs r on r.id = f.run_id
  where c.metadata_id is distinct from r.metadata_id`;
const timeLimit = Math.max(60_000, numRuns * 6_000);

test(
  'whatever the graph and whatever happens, after every step the invariants hold, and in the end every run is over',
  async ({ engine }) => {
    await publishAllTables(engine);
    const history = fc.tuple(graphs, histories(60));
    const property = fc.asyncProperty(history, async ([graph, steps]) => {
      await defineGraph(engine, graph);
      const player = await Player.of(engine, graph);
      await engine.sql.query(`select millrace.start('flow', id::text) from public.items`);
      try {
        for (const [place, step] of steps.entries()) {
          await player.play(step);
          const after = `step ${place}: ${step.what}`;
          const found = [...(await invariantBreaches(engine.sql)), ...(await engine.rows(broken))];
          expect({ after, broken: found }).toMatchObject({ broken: [] });
        }
      } finally {
        await player.end();
      }
      await finishAll(engine);
      await expectOver(engine, player.accepted);
      await expectShown(engine, graph);
    });
    await fc.assert(property, {
      numRuns,
      seed,
      path: process.env.GRAPHS_PATH,
      endOnFailure: !process.env.GRAPHS_SHRINK,
      interruptAfterTimeLimit: timeLimit - 20_000,
    });
  },
  timeLimit,
);

/** Projects replicate so: Postgres then refuses updates and deletes of a table without a key or a replica identity. */
async function publishAllTables(engine: Engine): Promise<void> {
  const superuser = new pg.Client({ connectionString: engine.database.superUrl });
  await superuser.connect();
  try {
    await superuser.query(
      'alter table public.test_clock replica identity full; create publication everything for all tables',
    );
  } finally {
    await superuser.end();
  }
}
