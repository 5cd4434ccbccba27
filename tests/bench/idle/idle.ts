// The cost of a project that has nothing to do.
import { type LineChoice, measureLines } from '../lines.ts';
import type { Measured } from '../results.ts';

/** Measures a stack with five pipelines and no work for so many minutes. */
export function idle(choice: LineChoice & { minutes: number }): Promise<Measured[]> {
  const options = { minutes: choice.minutes };
  const name = `five pipelines, ${choice.minutes} min`;
  return measureLines('idle', [{ name, module: 'idle/run-idle.ts', options }], choice);
}
