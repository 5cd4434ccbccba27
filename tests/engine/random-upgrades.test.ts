// Random histories that an upgrade comes into at a random step. UPGRADE_SEED=… UPGRADE_PATH=… plays a case again.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { expectOver, expectShown, finishAll } from '../support/engine/random-ending.ts';
import { defineGraph, graphs } from '../support/engine/random-graphs.ts';
import { histories, Player } from '../support/engine/random-history.ts';
import { makeNextLevel } from '../support/engine/releases.ts';
import { createEngine } from '../support/engine.ts';

const numRuns = Number(process.env.SOAK_UPGRADES ?? 1);
const seed = process.env.UPGRADE_SEED ? Number(process.env.UPGRADE_SEED) : Date.now() % 1_000_000_000;
const timeLimit = Math.max(60_000, numRuns * 15_000);

test(
  'an upgrade in the midst of any history leaves the invariants whole, and in the end every run is over',
  async () => {
    const next = await makeNextLevel();
    const history = fc.tuple(graphs, histories(60, 20), fc.nat(19));
    const property = fc.asyncProperty(history, async ([graph, steps, place]) => {
      const engine = await createEngine();
      await defineGraph(engine, graph);
      const player = await Player.of(engine, graph);
      await engine.sql.query(`select millrace.start('flow', id::text) from public.items`);
      try {
        for (const [at, step] of steps.entries()) {
          if (at === place) {
            // A user's open transaction would keep it waiting.
            await player.play({ what: 'let_go', roll: 0 });
            await engine.sql.query(next.upgrade);
            await engine.expectSound();
          }
          await player.play(step);
        }
      } finally {
        await player.end();
      }
      await engine.expectSound();
      await finishAll(engine);
      await expectOver(engine, player.accepted);
      await expectShown(engine, graph);
      expect(await engine.value('select e.level from millrace.engine() e')).toBe(next.level);
      await engine.database.drop();
    });
    await fc.assert(property, {
      numRuns,
      seed,
      path: process.env.UPGRADE_PATH,
      endOnFailure: true,
      interruptAfterTimeLimit: timeLimit - 20_000,
    });
  },
  timeLimit,
);
