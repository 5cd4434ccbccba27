// A service that is paid by the call: one receipt an idempotency key, however often it is asked.
import { randomUUID } from 'node:crypto';
import { type Call, type Fate, type FaultProxy, startFaultProxy } from '../support/faults/fault-proxy.ts';

/** How calls fare at the moment. */
export type TollMood = 'answers' | 'answers lost' | 'dead';

export class Toll {
  mood: TollMood = 'answers';
  /** The payments, by idempotency key. */
  readonly paid = new Map<string, { receipt: string; what: Set<string>; calls: number }>();
  readonly #proxy: FaultProxy;

  private constructor(proxy: FaultProxy) {
    this.#proxy = proxy;
    proxy.decide = (call) => this.#answer(call);
  }

  static async start(): Promise<Toll> {
    return new Toll(await startFaultProxy());
  }

  get url(): string {
    return this.#proxy.url;
  }

  #answer({ path, headers }: Call): Fate {
    if (this.mood === 'dead') throw new Error('nobody listens');
    const key = String(headers['idempotency-key']);
    const known = this.paid.get(key) ?? { receipt: randomUUID(), what: new Set(), calls: 0 };
    known.what.add(path);
    known.calls += 1;
    this.paid.set(key, known);
    // It was paid, but whoever paid does not learn of it.
    if (this.mood === 'answers lost' && known.calls % 3 === 1) throw new Error('the answer is lost');
    return { status: 200, json: { receipt: known.receipt } };
  }

  forget(): void {
    this.mood = 'answers';
    this.paid.clear();
  }

  stop(): Promise<void> {
    return this.#proxy.stop();
  }
}
