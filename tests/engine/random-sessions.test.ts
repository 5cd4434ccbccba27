// Several sessions at once on the same random graph: they never deadlock, and what they leave behind is sound.
// SESSIONS_SEED=… begins with the same graph and the same choices; who comes first is up to the machine.
import fc from 'fast-check';
import { expect } from 'vitest';
import { type Engine, test } from '../support/engine.ts';
import { expectOver, expectShown, finishAll } from '../support/random-ending.ts';
import { defineGraph, type Graph, graphs } from '../support/random-graphs.ts';
import { histories, Player, type Step } from '../support/random-history.ts';

const rounds = Number(process.env.SOAK_SESSION_GRAPHS ?? 1);
const seed = Number(process.env.SESSIONS_SEED ?? Date.now() % 1_000_000_000);
const timeLimit = 60_000 + rounds * 20_000;

/** Plays the histories side by side, and looks at the invariants all the while. */
async function playAll(engine: Engine, graph: Graph, sessions: Step[][]): Promise<Map<number, unknown>> {
  // A deadlock shows after a second; nobody waits longer than others' statements take.
  const players = await Promise.all(sessions.map(() => Player.of(engine, graph, '20s')));
  const troubles: string[] = [];
  let over = false;
  const watching = async () => {
    while (!over) await engine.expectSound();
  };
  const playing = players.map(async (player, n) => {
    for (const step of sessions[n] ?? []) {
      await player.play(step).catch(({ code, message, detail, where }) => {
        troubles.push(`${step.what}: ${code} ${message} ${detail ?? ''} ${where ?? ''}`);
      });
    }
    await player.end();
  });
  const played = Promise.all(playing).finally(() => {
    over = true;
  });
  await Promise.all([played, watching()]);
  expect(troubles).toEqual([]);
  return new Map(players.flatMap((player) => [...player.accepted]));
}

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
      const accepted = await playAll(engine, graph, sessions);
      await finishAll(engine);
      await expectOver(engine, accepted);
      await expectShown(engine, graph);
    }
  },
  timeLimit,
);
