import type { Engine } from '../engine/engine-client.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Waker } from './wake.ts';

export interface CollectorOptions {
  engine: Pick<Engine, 'collectChildren'>;
  waker: Pick<Waker, 'wake'>;
  log: Log;
}

const MOST_AT_ONCE = 100;
const MOST_TRIES = 5;
const FIRST_BUSY_PAUSE_MS = 50;
// Other workers go on reporting while this one ends, and collect what they report themselves.
const LAST_CALLS = 10;

/**
 * Has the engine add up, in the background, what children have reported to their parents. It makes one call at a time; fan-outs
 * that are asked for meanwhile go with the next. It tries a locked parent again a few times and then leaves it to the sweep,
 * like all fan-outs of a call that fails.
 */
export class ChildCollector {
  private readonly pending = new Set<number>();
  private readonly pausing = new Map<number, Promise<void>>();
  private readonly tries = new Map<number, number>();
  private underway: Promise<void> | null = null;
  private callsLeft = Infinity;

  constructor(private readonly o: CollectorOptions) {}

  /** Collects for these fan-outs soon; those that wait already are collected once. */
  collectChildren(fanOuts: number[]): void {
    this.addPending(fanOuts);
    if (this.pending.size > 0 && this.callsLeft > 0) this.underway ??= this.work();
  }

  /**
   * Resolves when all that waits is collected, or left to the sweep. To be called once `collectChildren` is called no more.
   */
  async settled(): Promise<void> {
    this.callsLeft = LAST_CALLS;
    while (this.underway || this.pausing.size > 0) await Promise.all([this.underway, ...this.pausing.values()]);
  }

  private addPending(fanOuts: number[]): void {
    for (const fanOut of fanOuts) if (!this.pausing.has(fanOut)) this.pending.add(fanOut);
  }

  private async work(): Promise<void> {
    for (; this.pending.size > 0 && this.callsLeft > 0; this.callsLeft--) {
      const batch = [...this.pending].slice(0, MOST_AT_ONCE);
      for (const fanOut of batch) this.pending.delete(fanOut);
      await this.collect(batch);
    }
    this.underway = null;
  }

  private async collect(batch: number[]): Promise<void> {
    try {
      const answer = await this.o.engine.collectChildren(batch);
      this.o.waker.wake(answer.wake);
      for (const fanOut of batch) {
        if (answer.busy.includes(fanOut)) this.tryLater(fanOut);
        else this.tries.delete(fanOut);
      }
      // Collecting may end a run that is itself a child.
      this.addPending(answer.collect);
    } catch (error) {
      const fields = { fan_outs: batch, error: messageOf(error) };
      this.o.log.warn('children were not added up, the sweep will do it', fields);
    }
  }

  private tryLater(fanOut: number): void {
    const tried = (this.tries.get(fanOut) ?? 0) + 1;
    if (tried >= MOST_TRIES) {
      this.tries.delete(fanOut);
      this.o.log.warn('a parent stays locked, the sweep will add up its children', { fan_out: fanOut });
      return;
    }
    this.tries.set(fanOut, tried);
    const pause = new Promise<void>((resolve) => setTimeout(resolve, FIRST_BUSY_PAUSE_MS * 2 ** (tried - 1)));
    const again = pause.then(() => {
      this.pausing.delete(fanOut);
      this.collectChildren([fanOut]);
    });
    this.pausing.set(fanOut, again);
  }
}
