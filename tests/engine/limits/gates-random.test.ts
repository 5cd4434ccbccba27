// Random work at a gate whose keys take turns. GATES_SEED=… begins with another seed, SOAK=1 takes more of them.
import fc from 'fast-check';
import { expect } from 'vitest';
import { GateBench, type Seen, type Shape, shapes, steps } from '../../support/engine/gate-bench.ts';
import { test } from '../../support/engine.ts';
import { huntLength } from '../../support/hunt-length.ts';

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, n) => all + n, 0);

/** Steps in which what passes is not seen in its order, or passes by other rules than before. */
const notTold = ['define', 'side by side'];

class Referee {
  /** How many more of a key have passed than of another, since there was room for both and both had more waiting. */
  #leads = new Map<string, number>();

  constructor(private readonly bench: GateBench) {}

  async check(verb: string): Promise<void> {
    const seen = await this.bench.look(verb);
    const { at, byKey } = this.bench.heldBack;
    const behind = (key: string) => (byKey ? (seen.behind[key] ?? 0) : sum(seen.behind));
    for (const { left, landed } of this.bench.isBypassed ? [] : seen.passed) {
      // A row whose key changed while it waited passes by its former key, and is not held back by its new one.
      if (byKey && left !== landed) continue;
      const changed = seen.passed.filter((row) => row.landed === landed && row.left !== landed).length;
      const room = at + (byKey ? (seen.drifted[landed] ?? 0) + changed : 0);
      expect(behind(landed), `${verb}: of ${landed} behind the gate`).toBeLessThanOrEqual(room);
    }
    const hungry = Object.keys(seen.waiting).filter((key) => behind(key) < at);
    if (verb === 'sweep' && seen.isOpen && (await this.bench.tokens()) >= 1) {
      expect(hungry, 'waits though there is room').toEqual([]);
    }
    this.#checkTurns(verb, seen, hungry);
  }

  #checkTurns(verb: string, seen: Seen, hungry: string[]): void {
    const { gate, isLimited, hasGate } = this.bench.shape;
    const before = this.#leads;
    this.#leads = new Map();
    if (!gate || !isLimited || !hasGate || !seen.isOpen || seen.isStale || notTold.includes(verb)) return;
    const passed = (key: string) => seen.passed.filter(({ left }) => left === key).length;
    for (const one of hungry) {
      for (const other of hungry) {
        const pair = `${one}|${other}`;
        const lead = before.get(pair);
        this.#leads.set(pair, lead === undefined ? 0 : lead + passed(one) - passed(other));
      }
    }
    expect(
      Math.max(0, ...this.#leads.values()),
      `${verb}: turns that a key has had before another`,
    ).toBeLessThanOrEqual(1);
  }
}

const first = Number(process.env.GATES_SEED ?? 1);

test.for(Array.from({ length: huntLength(2, 30) }, (_, place) => [first + place] as const))(
  'whatever happens, a gate passes what there is room for of each key, by turns, and forgets nothing (seed %i)',
  async ([seed], { engine }) => {
    const drawn = fc.tuple(shapes, fc.array(steps, { minLength: 50, maxLength: 50 }));
    const [[shape, history]] = fc.sample(drawn, { seed, numRuns: 1 }) as [
      [Shape, { verb: string; n: number; shape: Shape }[]],
    ];
    const bench = await GateBench.of(engine, seed % 2 === 0, shape);
    const referee = new Referee(bench);
    for (const step of history) {
      await bench.act(step.verb, step.n, step.shape);
      await referee.check(step.verb);
      await engine.expectSound();
    }
    await bench.open();
    for (let round = 0; (await bench.work(round)) > 0; round++) {
      await referee.check('sweep');
      expect(round, 'work is left that nothing passes or hands out').toBeLessThan(300);
    }
  },
);
