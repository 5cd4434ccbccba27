import { type Engine, EngineRefusal } from '../engine/engine-client.ts';
import type { JobOutcomeItem, Verdict } from '../engine/engine-contract.ts';
import type { ChildCollector } from '../worker/collect-children.ts';
import type { Waker } from '../worker/wake.ts';

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;

interface ResumeOptions {
  engine: Pick<Engine, 'resume'>;
  waker: Pick<Waker, 'wake'>;
  collector: Pick<ChildCollector, 'collectChildren'>;
}

/**
 * Records what became of external jobs, wakes the stages that got work and collects what children reported. Sends an item
 * whose row is locked again until `until` (epoch milliseconds). Returns the last answer to each item, in their order.
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

/** Sends a batch that the engine refuses as a whole item by item, so that one it cannot take spoils no other. */
async function resume(items: JobOutcomeItem[], options: ResumeOptions): Promise<Verdict[]> {
  try {
    const answer = await options.engine.resume(items);
    options.waker.wake(answer.wake);
    options.collector.collectChildren(answer.collect);
    return answer.items;
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    if (items.length === 1) return [{ verdict: 'rejected', reason: error.message }];
    const verdicts: Verdict[] = [];
    for (const item of items) verdicts.push(...(await resume([item], options)));
    return verdicts;
  }
}
