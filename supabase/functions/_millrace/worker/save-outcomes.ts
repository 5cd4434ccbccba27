import { EngineRefusal } from '../engine/engine-client.ts';
import type { Completion, OutcomeItem, Verdict } from '../engine/engine-contract.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Claimer } from './claim-work.ts';
import type { ItemsInWork } from './items-in-work.ts';
import { portionsOf } from './portions.ts';
import type { WorkerSession } from './worker-session.ts';

export interface SaverOptions {
  session: WorkerSession;
  inWork: ItemsInWork;
  intake: Claimer;
  log: Log;
}

/** Has the engine record the outcomes of attempts, and asks for new attempts by the same calls. */
export class OutcomeSaver {
  constructor(private readonly o: SaverOptions) {}

  /** Records these outcomes, portion by portion; the last call asks for as many items as there are free slots. */
  async saveAll(items: OutcomeItem[]): Promise<void> {
    const portions = portionsOf(items);
    const last = portions.pop() ?? [];
    for (const portion of portions) await this.save(portion, 0);
    await this.save(last, this.o.intake.ask(last.length));
  }

  /** Lets go of outcomes that the engine kept answering with busy; `until` says why there is no more time. */
  giveUpBusy(until: string): void {
    for (const attempt of this.o.inWork.postponed()) this.giveUp(attempt, `its row was locked until ${until}`);
  }

  /**
   * Halves a call that the engine refuses as a whole, so that one bad item spoils no other. A call that took too long is
   * repeated without its claim, since finished work must not wait for a smaller claim, and is then halved, too.
   */
  private async save(items: OutcomeItem[], wanted: number): Promise<void> {
    const { session, inWork, intake } = this.o;
    let limit = wanted;
    let answer: Completion;
    try {
      const goodbye = limit > 0 && items.length === inWork.size;
      answer = await session.complete(inWork, items, limit, goodbye, (tried) => {
        if (tried > 0) intake.timedOut(tried);
        else if (items.length > 1) throw new EngineRefusal('recording so many at once takes too long');
        limit = 0;
        return limit;
      });
    } catch (error) {
      if (!(error instanceof EngineRefusal)) throw error;
      if (items.length > 1) return await this.saveHalves(items, limit);
      return this.giveUp(items[0]?.attempt ?? 0, messageOf(error));
    }
    for (const [index, { attempt }] of items.entries()) this.follow(attempt, answer.items[index]);
    intake.take(answer, limit);
  }

  private async saveHalves(items: OutcomeItem[], limit: number): Promise<void> {
    const middle = Math.ceil(items.length / 2);
    await this.save(items.slice(0, middle), 0);
    await this.save(items.slice(middle), limit);
  }

  /** Does with an attempt what the engine's verdict asks for. */
  private follow(attempt: number, given: Verdict | undefined): void {
    const { verdict, reason } = given ?? { verdict: 'rejected', reason: 'the engine gave no answer' };
    const { inWork } = this.o;
    const about = inWork.about(attempt);
    if (verdict === 'busy') inWork.postpone(attempt, Date.now());
    // A rejected attempt may still be started in the engine. It is reported as failed, or it would wait for its lease
    // to expire.
    else if (verdict !== 'rejected' || !inWork.failInstead(attempt, reason)) inWork.drop(attempt);
    if (verdict === 'stale' || verdict === 'rejected') {
      this.o.log.warn('an outcome was not taken', { ...about, verdict, reason });
    }
  }

  private giveUp(attempt: number, reason: string): void {
    this.o.log.error('an outcome was not saved, the lease will expire', { ...this.o.inWork.about(attempt), reason });
    this.o.inWork.drop(attempt);
  }
}
