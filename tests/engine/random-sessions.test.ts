// Several sessions at once on the same random graph: they never deadlock, and what they leave behind is sound.
// SESSIONS_SEED=… begins with the same graph and the same choices; who comes first is up to the machine.
import fc from 'fast-check';
import { expectOver, expectShown, finishAll } from '../support/engine/random-ending.ts';
import { defineGraph, graphs } from '../support/engine/random-graphs.ts';
import { histories } from '../support/engine/random-history.ts';
import { playSideBySide } from '../support/engine/side-by-side.ts';
import { test } from '../support/engine.ts';

const rounds = Number(process.env.SOAK_SESSION_GRAPHS ?? 1);
const seed = Number(process.env.SESSIONS_SEED ?? Date.now() % 1_000_000_000);
const timeLimit = 60_000 + rounds * 20_000;

test(
  'sessions that do at random whatever can be done to a random graph never deadlock, and every run ends',
  async ({ engine }) => {
    for (let round = 0; round < rounds; round++) {
      console.info(`SESSIONS_SEED=${seed + round}`);
      const [graph] = fc.sample(graphs, { seed: seed + round, numRuns: 1 });
      const drawn = fc.sample(histories(60, 60), { seed: seed + round, numRuns: 4 });
      // Rows that are held until the same session lets go of them are for one session alone.
      const sessions = drawn.map((steps) => steps.filter(({ what }) => what !== 'hold'));
      if (!graph) throw new Error('no graph was drawn');
      await defineGraph(engine, graph);
      await engine.sql.query(`select millrace.start('flow', id::text) from public.items`);
      const accepted = await playSideBySide(engine, graph, sessions);
      await finishAll(engine);
      await expectOver(engine, accepted);
      await expectShown(engine, graph);
    }
  },
  timeLimit,
);
