import { restingValues } from './status-moves.ts';
import type { ShownStage } from './status-path.ts';
import type { StatusDefinition } from './status-values.ts';

/** Where a row comes to stand that is adopted with a value. */
export interface Landing {
  /** Left out where it is the value itself. */
  lands?: string;
  /** The stage that begins there, if any. */
  begins?: string;
  /** The stages before it that can say whether a row brings their output along. */
  before?: string[];
}

/**
 * Returns where a row lands that is adopted with a value. No worker holds an adopted row. So a value of work in
 * progress becomes the value at which its layer is entered, or without a layer the value at which its stage begins.
 */
export function landingOf(status: StatusDefinition, stages: ShownStage[]): (value: string) => Landing {
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
    const lands = at?.enter ?? at?.ready ?? value;
    const reached = stages.flatMap((s) => {
      if ([s.ready, s.enter, ...s.live].includes(lands)) return [s.position];
      return [s.completed, s.leave].includes(lands) ? [s.position + 1] : [];
    });
    const before = stages.filter((s) => s.given && reached.length > 0 && s.position < Math.min(...reached));
    return {
      ...(lands !== value && { lands }),
      ...(at && at.enter === undefined && { begins: at.name }),
      ...(before.length > 0 && { before: before.map(({ name }) => name) }),
    };
  };
}
