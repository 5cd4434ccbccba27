// How many Edge Functions 1,000 rows call at one stage: that is what Supabase bills of them. Beside it the queue of Supabase's own guide.
import { type Line, type LineChoice, measureLines } from '../lines.ts';
import type { Measured } from '../results.ts';

const rows = 1_000;

const lines: Line[] = [
  {
    name: 'a stage that waits 1 to 3 s',
    module: 'wait/run-wait.ts',
    options: { rows, batch: 50, workers: 1, cpuMs: 0 },
  },
  { name: 'the guide, plain', module: 'cost/run-guide.ts', options: { rows, waitMs: 0 } },
  { name: 'the guide, a wait of 1 s', module: 'cost/run-guide.ts', options: { rows, waitMs: 1_000 } },
];

/** Measures what 1,000 rows call. */
export function cost(choice: LineChoice): Promise<Measured[]> {
  return measureLines('cost', lines, choice);
}
