// Between the functions and the project: calls of the engine arrive twice, or their answers get lost.
import { type Call, type Fate, type FaultProxy, send, startFaultProxy } from '../support/faults/fault-proxy.ts';

/** How the calls fare at the moment. */
export type CallMood = 'passed on' | 'answers lost' | 'twice';

/** One call in so many suffers. */
const every = 4;

export class DataApi {
  mood: CallMood = 'passed on';
  #calls = 0;
  readonly #proxy: FaultProxy;

  private constructor(proxy: FaultProxy) {
    this.#proxy = proxy;
    proxy.decide = (call) => this.#decide(call);
  }

  static async start(): Promise<DataApi> {
    return new DataApi(await startFaultProxy());
  }

  get url(): string {
    return this.#proxy.url;
  }

  set target(url: string) {
    this.#proxy.target = url;
  }

  async #decide(call: Call): Promise<Fate> {
    if (this.mood === 'passed on' || !/\/rpc\/(millrace|model_batch)_/.test(call.path)) return 'pass';
    this.#calls += 1;
    if (this.#calls % every !== 0) return 'pass';
    if (this.mood === 'answers lost') return 'lose answer';
    await send(this.#proxy.target, call).catch(() => {});
    return 'pass';
  }

  stop(): Promise<void> {
    return this.#proxy.stop();
  }
}
