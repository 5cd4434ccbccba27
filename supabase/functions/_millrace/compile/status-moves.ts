// Which value of a status column may follow which: by the engine as work goes on, by a person who writes it, or by a call such as
// start(). The engine's moves are what a row passes from every state of a stage; people's follow from the stages, where a ready
// value starts its stage or starts it over, and from what the definition lists.
import { type ShownStage, statusPath, type Target } from './status-path.ts';
import type { StatusDefinition } from './status-values.ts';

interface Move {
  from?: string | undefined;
  to: string | undefined;
  by: 'engine' | 'person' | 'call';
  means: string;
  /** `at`: the stage that must be live for the move. `stage`: the stage that the move begins or answers. */
  at?: string | undefined;
  stage?: string | undefined;
  /** The definition lists it, so that it is legal wherever the run came to its end. */
  declared?: true;
  drawn?: true;
}

/** Moves that differ only in their `from` values; null stands for a new row. */
export type MoveRow = Omit<Move, 'from'> & { from: (string | null)[] };

/** Returns the moves of a pipeline, as millrace.version_moves holds them. */
export function statusMoves(status: StatusDefinition, stages: ShownStage[]): MoveRow[] {
  const engine = movesOfEngine(status, stages);
  const made = new Set(engine.map(pairOf));
  const calls = movesOfCalls(status, stages).filter((move) => !made.has(pairOf(move)));
  const all = [...engine, ...movesOfPeople(status, stages), ...calls];
  const moves = all.filter(({ from, to }) => to !== undefined && to !== from);
  draw(status, moves);
  const rows = new Map<string, MoveRow>();
  for (const { from = null, ...move } of moves) {
    const row = rows.get(JSON.stringify(move)) ?? { ...move, from: [] };
    if (!row.from.includes(from)) row.from.push(from);
    rows.set(JSON.stringify(move), row);
  }
  return [...rows.values()];
}

const pairOf = ({ from, to }: Pick<Move, 'from' | 'to'>) => JSON.stringify([from ?? null, to]);

/** Returns whether a run may skip all stages between two positions. */
const mayPass = (stages: ShownStage[], after: number, before: number) =>
  stages.every(({ position, maySkip }) => position <= after || position >= before || maySkip);

/** The engine's moves within a stage, and from one to another, where stages between may be left out and the run may end. */
function movesOfEngine(status: StatusDefinition, stages: ShownStage[]): Move[] {
  const targets: Target[] = stages.flatMap((i) => [...within(status, i), ...onward(stages, i), ...aside(stages, i)]);
  const means: Record<string, string> = { ended: 'end', failed: 'fail' };
  const moves = targets.flatMap((target) => {
    const passed = statusPath(target);
    return passed.map((to, step): Move => {
      return { from: step > 0 ? passed[step - 1] : target.was, to, by: 'engine', means: means[target.phase] ?? 'work' };
    });
  });
  const { value, before } = nothingDone(stages);
  const first = stages.every(({ maySkip }) => maySkip) ? [stages[0]?.ready, stages[0]?.enter] : [];
  const left = [...before.filter(({ mayFail }) => mayFail).flatMap(({ live }) => live), ...first];
  return [
    ...moves,
    ...left
      .filter((from) => from !== undefined)
      .map((from): Move => ({ from, to: value, by: 'engine', means: 'work' })),
  ];
}

/** Moves of a stage that is under way: it is claimed, retried, completed or failed, or its result ends the run. */
function within(status: StatusDefinition, at: ShownStage): Target[] {
  const next: [string, (string | undefined)[]][] = [
    ['queued', at.manual ? [] : [at.ready]],
    ['backoff', [at.backoff]],
    ['started', [at.started]],
    ['completed', at.done],
    ['failed', [...at.failed, String(status.failed)]],
  ];
  const ended = at.ends.flatMap((value) =>
    at.done.map((done): Target => ({ value, phase: 'ended', done: at, via: at.manual ? done : undefined })),
  );
  const targets = [
    ...next.flatMap(([phase, values]) => values.map((value): Target => ({ value, phase, at }))),
    ...ended,
  ].filter(({ value }) => value !== undefined);
  return at.live.flatMap((was) => targets.map((target) => ({ ...target, was })));
}

const begins = (at: ShownStage): Target => ({ value: at.ready, phase: at.manual ? 'asked' : 'queued', at });

/** Moves from a stage that is done to each later stage that has only skippable stages before it. */
function onward(stages: ShownStage[], i: ShownStage): Target[] {
  return stages
    .filter((j) => j.position > i.position && mayPass(stages, i.position, j.position))
    .flatMap((j) => i.done.map((done) => ({ ...begins(j), done: i, via: i.manual ? done : undefined })))
    .flatMap((target) => i.live.map((was) => ({ ...target, was })));
}

/** Moves from the gate of a layer where a row waits, and from a failed stage without which the run goes on. */
function aside(stages: ShownStage[], i: ShownStage): Target[] {
  return stages.flatMap((j) => {
    if (!mayPass(stages, i.position, j.position)) return [];
    const gate = j === i || (j.position > i.position && i.maySkip) ? [i.enter] : [];
    const failed = i.mayFail && j.position > i.position ? i.live : [];
    const back = i.mayFail && j.position < i.position ? i.live : [];
    return [
      ...[...gate, ...failed].filter((was) => was !== undefined).map((was) => ({ ...begins(j), was })),
      ...back.flatMap((was) => j.done.map((value): Target => ({ was, value, phase: 'queued', at: i }))),
    ];
  });
}

/**
 * Returns how a run ends in which no stage was done.
 *
 * `value`: the value that such a run shows at its end.
 * `before`: the stages that may have been its last.
 */
function nothingDone(stages: ShownStage[]): { value: string | undefined; before: ShownStage[] } {
  const last = stages.findLast(({ demanded }) => !demanded) ?? stages.at(-1);
  const end = last?.position ?? 0;
  return {
    value: last?.completed ?? last?.ready,
    before: stages.filter(({ position }) => position <= end && mayPass(stages, position, end + 1)),
  };
}

/** A value at which a run may rest, and the last stage that may start from there. */
interface Rest {
  value: string;
  live?: ShownStage;
  until: ShownStage;
  done?: true;
}

/** Lists the values at which a run may rest. A run that ends with a bypassed stage keeps the value of an earlier stage. */
export function restingValues(status: StatusDefinition, stages: ShownStage[]): Rest[] {
  return [
    ...stages.flatMap((until): Rest[] => [
      ...until.live.map((value) => ({ value, live: until, until })),
      ...until.done
        .filter((value) => value !== undefined)
        .filter(() => stages.every((l) => l.position <= until.position || l.maySkip || l.demanded))
        .map((value): Rest => ({ value, until, done: true })),
      ...[...until.failed, String(status.failed), ...until.ends].map((value) => ({ value, until })),
    ]),
    ...keptValues(stages).map(({ value, stage }): Rest => ({ value, live: stage, until: stage })),
  ];
}

/**
 * Lists the values that a row keeps where its run ends with a bypassed stage: values of earlier stages that do not end the
 * run. No stage after them may be a question that every run is asked.
 */
function keptValues(stages: ShownStage[]): { value: string; stage: ShownStage }[] {
  const asked = (q: ShownStage) => q.manual && !q.maySkip && !q.demanded;
  const kept = stages.flatMap((s) =>
    s.done
      .filter((value) => value !== undefined && !s.ends.includes(value))
      .map((value) => ({ s, value: value as string })),
  );
  return kept
    .filter(({ s }) => !stages.some((q) => q.position > s.position && asked(q)))
    .flatMap(({ s, value }) =>
      stages.filter((b) => b.position > s.position && !b.manual).map((stage) => ({ value, stage })),
    );
}

/** Returns the engine's moves after a person's call: any stage may be started, and work be cancelled or left out. */
function movesOfCalls(status: StatusDefinition, stages: ShownStage[]): Move[] {
  const move = (from: string | undefined, to: string | undefined, means: string): Move => ({
    from,
    to,
    by: 'call',
    means,
  });
  const known = Object.values(status.values).flatMap((values) => Object.keys(values));
  const { value: nothing, before } = nothingDone(stages);
  return stages.flatMap((s) => [
    ...[undefined, ...known].map((from) => move(from, s.ready, 'start')),
    move(undefined, s.enter, 'start'),
    ...s.live.map((from) => move(from, String(status.failed), 'cancel')),
    ...(before.includes(s) ? s.live.map((from) => move(from, nothing, 'skip')) : []),
    ...known
      .filter((from) => !stages.some((b) => b.position <= s.position && b.live.includes(from)))
      .flatMap((from) => s.done.map((to) => move(from, to, 'skip'))),
    ...keptValues(stages)
      .filter(({ stage }) => stage === s)
      .flatMap(({ value }) => s.live.map((from) => move(from, value, 'skip'))),
  ]);
}

/**
 * Returns the moves that people may make. They begin rows, start stages over and give rows up. While a question is
 * open, they go from step to step, answer it, and take the answer back.
 */
function movesOfPeople(status: StatusDefinition, stages: ShownStage[]): Move[] {
  const rests = restingValues(status, stages);
  const gates = stages.filter((s) => s.enter !== undefined && stages.find(({ enter }) => enter === s.enter) === s);
  const closed = status.closed.map(String);
  const move = (from: string | undefined, to: string, means: string, stage?: ShownStage, at?: ShownStage): Move => {
    return { from, to, by: 'person', means, stage: stage?.name, at: at?.name };
  };
  const begun = gates.flatMap((g) => [
    move(undefined, g.enter as string, 'enter', g),
    ...stages
      .filter((s) => !s.demanded && mayPass(stages, g.position - 1, s.position))
      .map((s) => move(g.enter, s.ready, 'start', s)),
  ]);
  const restarted = rests.flatMap((r) =>
    stages
      .filter((s) => s.position <= r.until.position || (r.done && s.onDemand))
      .filter((s) => !closed.includes(r.value) || (r.done && s.onDemand))
      .map((s) => move(r.value, s.ready, 'start', s, r.live)),
  );
  return [
    ...stages.filter((s) => !s.demanded).map((s) => move(undefined, s.ready, 'start', s)),
    ...begun,
    ...restarted,
    ...stages.flatMap((s) => movesOfQuestion(s, rests, move)),
    ...declaredMoves(status, stages, gates, move),
  ];
}

type MakeMove = (from: string | undefined, to: string, means: string, stage?: ShownStage, at?: ShownStage) => Move;

function movesOfQuestion(s: ShownStage, rests: Rest[], move: MakeMove): Move[] {
  const done = rests.filter((r) => r.done && !(r.value in s.answers));
  return [
    ...s.interimMoves.map(([from, to]) => move(String(from), String(to), 'interim', s, s)),
    ...Object.entries(s.answers).flatMap(([to, { from }]) =>
      from.map((value) => move(String(value), to, 'answer', s, s)),
    ),
    ...(s.discards ? s.live.flatMap((from) => done.map(({ value }) => move(from, value, 'discard', s, s))) : []),
  ];
}

function declaredMoves(status: StatusDefinition, stages: ShownStage[], gates: ShownStage[], move: MakeMove): Move[] {
  const declared = status.moves.flatMap(([from, value]) => {
    const to = String(value);
    const gate = gates.find(({ enter }) => enter === to);
    const began = stages.filter(({ ready }) => ready === to);
    if (gate) return [move(String(from), to, 'enter', gate)];
    if (began.length > 0) return began.map((stage) => move(String(from), to, 'start', stage));
    return to === String(status.failed) ? [move(String(from), to, 'give_up')] : [];
  });
  const entered = status.entries.map((value) => move(undefined, String(value), 'interim'));
  return [...declared, ...entered].map((one) => ({ ...one, declared: true }));
}

/** Marks one move of each pair that a diagram draws, a person's move before the engine's. */
function draw({ drawn }: StatusDefinition, moves: Move[]): void {
  const ranks = ['person', 'engine', 'call'];
  for (const chain of drawn) {
    for (const [position, to] of chain.slice(1).entries()) {
      const from = chain[position];
      const pair = pairOf({ from: from === null ? undefined : String(from), to: String(to) });
      const alike = moves.filter((move) => pairOf(move) === pair);
      alike.sort((one, other) => ranks.indexOf(one.by) - ranks.indexOf(other.by) || (one.means > other.means ? -1 : 1));
      if (alike[0]) alike[0].drawn = true;
    }
  }
}
