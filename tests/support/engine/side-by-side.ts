// Several random histories at once, each in sessions of its own.
import { expect } from 'vitest';
import type { Engine } from '../engine.ts';
import type { Graph } from './random-graphs.ts';
import { Player, type Step } from './random-history.ts';

/** Plays histories side by side, and looks at the invariants all the while. Resolves to the results that were accepted. */
export async function playSideBySide(engine: Engine, graph: Graph, sessions: Step[][]): Promise<Map<number, unknown>> {
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
