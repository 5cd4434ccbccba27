import { type Engine, EngineRefusal } from '../engine/engine-client.ts';
import type { JobOutcomeItem, Verdict } from '../engine/engine-contract.ts';
import type { Folder } from '../worker/fold.ts';
import type { Ringer } from '../worker/ring.ts';

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;

interface ResumeOptions {
  engine: Pick<Engine, 'resume'>;
  ringer: Pick<Ringer, 'ring'>;
  folder: Pick<Folder, 'fold'>;
}

/**
 * Records what became of external jobs, rings the stages that got work and folds what children reported. One whose row is locked is sent again
 * until `until` (epoch milliseconds). Returns the last answer to each item, in their order.
 */
export async function resumeJobs(
  items: JobOutcomeItem[],
  options: ResumeOptions & { until: number },
): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  let pending = items.map((item, index) => ({ item, index }));
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const answers = await resume(
      pending.map(({ item }) => item),
      options,
    );
    pending.forEach(({ index }, at) => {
      verdicts[index] = answers[at] ?? { verdict: 'rejected', reason: 'the engine gave no answer to this item' };
    });
    pending = pending.filter(({ index }) => verdicts[index]?.verdict === 'busy');
    if (pending.length === 0 || Date.now() + pause > options.until) return verdicts;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** A batch the engine refuses as a whole goes item by item, so that one it cannot take spoils no other. */
async function resume(items: JobOutcomeItem[], options: ResumeOptions): Promise<Verdict[]> {
  try {
    const answer = await options.engine.resume(items);
    options.ringer.ring(answer.ring);
    options.folder.fold(answer.fold);
    return answer.items;
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    if (items.length === 1) return [{ verdict: 'rejected', reason: error.message }];
    const verdicts: Verdict[] = [];
    for (const item of items) verdicts.push(...(await resume([item], options)));
    return verdicts;
  }
}
