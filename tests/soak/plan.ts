// The steps that a campaign will do, drawn from its seed alone: the same seed gives the same operations and faults in the same order.
// Whom they strike is looked up when they are played (the third lead of those that are there by then), and who comes first
// is up to the machine: so a seed that failed may pass when it is played again, and fail at the third try.
import { randomNumbers } from '../support/engine/random-session.ts';

/** The actions that users and operators do, and how often in comparison with one another. */
export const operations = {
  'insert leads': 3,
  'insert a document': 1,
  'insert a book': 1,
  'queue many leads': 3,
  'queue a document': 2,
  'queue a book': 2,
  'insert parcels': 6,
  'queue parcels': 4,
  'serializable sessions write parcels': 4,
  'change keys': 4,
  'redefine parcels': 4,
  'insert remarks': 4,
  'queue remarks': 3,
  'edit remarks': 2,
  'insert links': 3,
  'write words of links': 5,
  'add a feed': 2,
  'enter articles': 3,
  'review articles': 6,
  'edit articles': 3,
  'start anew': 2,
  cancel: 3,
  delete: 2,
  reset: 2,
  skip: 1,
  'edit on a copy': 4,
  retry: 2,
  'bulk begun': 4,
  'bulk goes on': 5,
  'bulk aborted': 1,
  throttle: 3,
  'end a throttle': 3,
  bypass: 3,
  'end a bypass': 3,
  'take up': 3,
  'a day passes and is pruned': 1,
  decide: 4,
  'turn the cut-over': 3,
  pause: 2,
  'go on': 3,
  'hold a row': 3,
  'time passes': 6,
  sweep: 6,
} as const;

/** The faults of the machinery. Some are over at once; the others last for some steps. */
export const faults = {
  'function killed': 4,
  'zombie past its lease': 3,
  'worker killed': 3,
  'worker told to end': 2,
  'Postgres killed': 2,
  'PostgREST killed': 2,
  'statement timeouts of 15 ms': 3,
  'full disk': 3,
  'connections exhausted': 2,
  'queue of pg_net emptied': 4,
  'dead service': 3,
  'answers of the Data API lost': 4,
  'calls of the Data API twice': 4,
  'toll dead': 2,
  'toll forgets to answer': 3,
  'table locked': 5,
  'callbacks twice': 3,
  'callbacks late': 3,
  'callbacks lost': 2,
  'callback forged': 3,
  'wakes duplicated': 4,
  'function killed at its provider': 3,
} as const;

export type OperationKind = keyof typeof operations;
export type FaultKind = keyof typeof faults;

export interface Step<Kind = OperationKind | FaultKind> {
  kind: Kind;
  /** Chooses among what is there: each user of it takes the next number, from 0 up to (not including) a million. */
  choices: number[];
  /** For how many steps a fault goes on, where it is none of a moment. */
  lasts: number;
  /** Milliseconds until the next step. */
  pauseMs: number;
}

/** Costly ones come once a campaign at most, so that a hundred campaigns fit into an hour. */
const onceAtMost: string[] = [
  'Postgres killed',
  'PostgREST killed',
  'full disk',
  'connections exhausted',
  'insert a book',
  'a day passes and is pruned',
];
const stepsOfCampaign = 80;
const longestPauseMs = 100;
const opening: OperationKind[] = [
  'insert leads',
  'insert a document',
  'insert links',
  'add a feed',
  'enter articles',
  'insert parcels',
  'insert parcels',
  'insert parcels',
  'insert parcels',
  'insert remarks',
  'insert remarks',
];

export interface Plan {
  seed: number;
  /** Rows that are there and queued when it begins. */
  opening: Step<OperationKind>[];
  steps: Step[];
}

/** Draws the plan of a campaign. */
export function drawPlan(seed: number): Plan {
  const random = randomNumbers(seed);
  const step = <Kind>(kind: Kind): Step<Kind> => ({
    kind,
    choices: Array.from({ length: 6 }, () => random(1_000_000)),
    lasts: 2 + random(5),
    pauseMs: random(longestPauseMs),
  });
  const seen = new Set<string>(opening);
  const draw = (): OperationKind | FaultKind => {
    const kinds: Record<string, number> = random(3) === 0 ? faults : operations;
    const kind = weighted(kinds, random);
    if (onceAtMost.includes(kind) && seen.has(kind)) return draw();
    seen.add(kind);
    return kind as OperationKind | FaultKind;
  };
  return {
    seed,
    opening: opening.map((kind) => step(kind)),
    steps: Array.from({ length: stepsOfCampaign }, () => step(draw())),
  };
}

function weighted(kinds: Record<string, number>, random: (bound: number) => number): string {
  const total = Object.values(kinds).reduce((sum, weight) => sum + weight, 0);
  let left = random(total);
  for (const [kind, weight] of Object.entries(kinds)) {
    left -= weight;
    if (left < 0) return kind;
  }
  throw new Error('the weights do not add up');
}

/** Takes the choices of a step one after the other. */
export class Choices {
  readonly #numbers: number[];
  #next = 0;

  constructor({ choices }: Step) {
    this.#numbers = choices;
  }

  /** A number from 0 up to (not including) `bound`. */
  below(bound: number): number {
    return (this.#numbers[this.#next++ % this.#numbers.length] ?? 0) % bound;
  }

  /** A running fault; undefined when there is none. */
  oneOf<T>(list: readonly T[]): T | undefined {
    return list[this.below(Math.max(list.length, 1))];
  }
}
