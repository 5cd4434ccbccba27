// Random chains in one status column and random histories against the real database: after each step every row shows where
// its run stands, and its history is a chain of legal moves that ends there. STATUS_SEED=… STATUS_PATH=… plays a case again.
import fc from 'fast-check';
import { expect } from 'vitest';
import { chains, defineChain } from '../../support/engine/random-chains.ts';
import { expectOver, finishAll } from '../../support/engine/random-ending.ts';
import { histories, Player } from '../../support/engine/random-history.ts';
import { playSideBySide } from '../../support/engine/side-by-side.ts';
import { test } from '../../support/engine.ts';

const numRuns = Number(process.env.SOAK_CHAINS ?? 3);
const seed = process.env.STATUS_SEED ? Number(process.env.STATUS_SEED) : Date.now() % 1_000_000_000;
const timeLimit = Math.max(90_000, numRuns * 10_000);

test(
  'whatever the chain, whatever becomes of it, and whatever happens, every row shows where its run stands, by legal moves alone',
  async ({ engine }) => {
    const property = fc.asyncProperty(fc.tuple(chains, histories(60, 20, true)), async ([chain, steps]) => {
      await defineChain(engine, chain);
      const player = await Player.of(engine, chain.graph);
      await engine.sql.query(`select millrace.start('flow', id::text) from public.items where was is null`);
      try {
        for (const [place, step] of steps.entries()) {
          await player.play(step);
          expect({
            after: `step ${place}: ${step.what}`,
            broken: await engine.rows('select * from millrace.check_invariants()'),
          }).toMatchObject({ broken: [] });
        }
      } finally {
        await player.end();
      }
      await engine.sql.query('update public.items set check_at = null');
      await finishAll(engine);
      await expectOver(engine, player.accepted);
    });
    await fc.assert(property, {
      numRuns,
      seed,
      path: process.env.STATUS_PATH,
      endOnFailure: !process.env.STATUS_SHRINK,
      interruptAfterTimeLimit: timeLimit - 20_000,
    });
  },
  timeLimit,
);

test(
  'sessions that do at random whatever can be done to such rows never deadlock, and every run ends',
  async ({ engine }) => {
    for (let round = 0; round < numRuns / 3; round++) {
      console.info(`STATUS_SEED=${seed + round}`);
      const [chain] = fc.sample(chains, { seed: seed + round, numRuns: 1 });
      const drawn = fc.sample(histories(50, 50, true), { seed: seed + round, numRuns: 4 });
      // Rows that are held until the same session lets go of them are for one session alone.
      const sessions = drawn.map((steps) => steps.filter(({ what }) => what !== 'hold'));
      if (!chain) throw new Error('no chain was drawn');
      await defineChain(engine, chain);
      await engine.sql.query(`select millrace.start('flow', id::text) from public.items where was is null`);
      const accepted = await playSideBySide(engine, chain.graph, sessions);
      await engine.sql.query('update public.items set check_at = null');
      await finishAll(engine);
      await expectOver(engine, accepted);
    }
  },
  timeLimit,
);
