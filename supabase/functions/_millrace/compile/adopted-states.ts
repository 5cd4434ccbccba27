import { restingValues } from './status-moves.ts';
import type { ShownStage } from './status-path.ts';
import type { StatusDefinition } from './status-values.ts';

/** The state of a row that is adopted with a value. */
export interface AdoptedState {
  /** Left out where it is the value itself. */
  adopted_as?: string;
  /** The stage that begins there, if any. */
  begins?: string;
  /** The stages before it that can say whether a row brings their output along. */
  before?: string[];
}

/**
 * Returns the state of a row that is adopted with a value. No worker holds an adopted row. So a value of work in
 * progress becomes the value at which its layer is entered, or without a layer the value at which its stage begins.
 */
export function adoptedStateOf(status: StatusDefinition, stages: ShownStage[]): (value: string) => AdoptedState {
  const rests = restingValues(status, stages).filter(({ value, live }) => {
    // A resting value at which another stage is ready begins that stage, although a run might also end there.
    const readied = stages.some((s) => s.ready === value && s.completed !== undefined && s.completed !== value);
    return live === undefined && !readied;
  });
  const kept = new Set([...rests.map(({ value }) => value), ...stages.map(({ enter }) => enter)]);
  return (value) => {
    const positions = kept.has(value) ? [] : stages.filter((s) => [...s.live, s.completed, s.leave].includes(value));
    const rank = (s: ShownStage) => [s.enter === undefined, s.ready !== value].map(Number).join('');
    const [at] = positions.sort(
      (one, other) => Number(rank(one)) - Number(rank(other)) || one.position - other.position,
    );
    const adopted_as = at?.enter ?? at?.ready ?? value;
    const reached = stages.flatMap((s) => {
      if ([s.ready, s.enter, ...s.live].includes(adopted_as)) return [s.position];
      return [s.completed, s.leave].includes(adopted_as) ? [s.position + 1] : [];
    });
    const before = stages.filter((s) => s.given && reached.length > 0 && s.position < Math.min(...reached));
    return {
      ...(adopted_as !== value && { adopted_as }),
      ...(at && at.enter === undefined && { begins: at.name }),
      ...(before.length > 0 && { before: before.map(({ name }) => name) }),
    };
  };
}
