import type { Rpc, RpcAnswer } from '../../../supabase/functions/_millrace/engine/engine-client.ts';
import type { Item, OutcomeItem, WakeTarget } from '../../../supabase/functions/_millrace/engine/engine-contract.ts';

type Args = Record<string, unknown>;
type VerdictName = 'accepted' | 'duplicate' | 'stale' | 'busy' | 'rejected';

/** An in-memory queue that answers the engine's calls, for tests of the runtime's loop alone. */
export class FakeEngine {
  readonly calls: { name: string; args: Args }[] = [];
  readonly saved = new Map<number, OutcomeItem>();
  queue: Item[] = [];
  limits = { batch_size: 3, timeout_ms: 2_000, result_limit_bytes: 10_000 };
  leaseMs = 60_000;
  /** Attempts that were taken away. */
  lost: number[] = [];
  wakes: WakeTarget[] = [];
  /** Fan-outs that the next answer names. */
  collects: number[] = [];
  refuse: string | null = null;
  leaveAnswers: boolean[] = [];
  /** Whether a worker that says goodbye with a completion is signed off when there is nothing for it. */
  takesGoodbyes = false;
  verdictFor: (item: OutcomeItem) => VerdictName = () => 'accepted';
  /** Called before each call is carried out; an answer replaces the call. */
  before: (name: string, args: Args) => RpcAnswer | null = () => null;
  /** Called after each call was carried out; an answer replaces its answer, as when it is lost on its way. */
  after: (name: string, args: Args) => RpcAnswer | null = () => null;
  private readonly answers = new Map<string, unknown>();

  readonly rpc: Rpc = async (name, args) => {
    this.calls.push({ name, args: structuredClone(args) });
    const instead = this.before(name, args);
    if (instead) return instead;
    const data = this.answer(name, args);
    return this.after(name, args) ?? { data, error: null, status: 200 };
  };

  /** The calls of one function so far. */
  callsOf(name: string): Args[] {
    return this.calls.filter((call) => call.name === name).map((call) => call.args);
  }

  private answer(name: string, args: Args): unknown {
    switch (name) {
      case 'millrace_claim':
      case 'millrace_complete':
        return this.once(`${args.p_worker} ${args.p_seq}`, () => ({
          ...(name === 'millrace_complete' ? { items: this.complete(args.p_items as OutcomeItem[]) } : {}),
          ...this.claim(args.p_limit as number),
          ...(this.takesGoodbyes && args.p_goodbye === true && { left: this.queue.length === 0 }),
        }));
      case 'millrace_renew':
        return { renewed: 1, lost: (args.p_attempts as number[]).filter((attempt) => this.lost.includes(attempt)) };
      case 'millrace_leave':
        return this.leave(args.p_hand_over === true);
      case 'millrace_collect_children':
        return { wake: [], busy: [], collect: [] };
      case 'millrace_wake':
        return { woken: (args.p_stages as unknown[]).length };
      default:
        throw new Error(`the fake engine knows no ${name}`);
    }
  }

  private leave(handOver: boolean) {
    const own = { pipeline: 'test', stage: 'work', function: 'test-work' };
    if (handOver) return { left: true, wake: this.queue.length > 0 ? [own] : [] };
    return { left: this.leaveAnswers.shift() ?? this.queue.length === 0, wake: [] };
  }

  private once(key: string, act: () => unknown): unknown {
    if (!this.answers.has(key)) this.answers.set(key, act());
    return structuredClone(this.answers.get(key));
  }

  private claim(limit: number) {
    if (this.refuse) return { status: 'refused', reason: this.refuse };
    const alone = this.queue.findIndex((item) => item.isolated);
    const batch = alone === 0 && limit > 0 ? this.queue.splice(0, 1) : this.queue.splice(0, limit);
    return {
      status: batch.length > 0 ? 'working' : 'empty',
      reason: null,
      lease_ms: this.leaseMs,
      stage: this.limits,
      batch,
      wake: this.wakes.splice(0),
      collect: this.collects.splice(0),
    };
  }

  private complete(items: OutcomeItem[]) {
    return items.map((item) => {
      const verdict = this.verdictFor(item);
      if (verdict === 'accepted') this.saved.set(item.attempt, item);
      return { attempt: item.attempt, verdict, reason: verdict === 'rejected' ? 'not storable' : null };
    });
  }
}

/** A claimed item with attempt number `attempt`. */
export function makeItem(attempt: number, changes: Partial<Item> = {}): Item {
  return {
    attempt,
    token: `00000000-0000-4000-8000-${String(attempt).padStart(12, '0')}`,
    run: attempt,
    trace_id: `trace-${attempt}`,
    version: 1,
    entity_id: String(attempt),
    entity: { id: attempt },
    needs: {},
    retry_count: 0,
    submission: attempt,
    stage_run: attempt,
    isolated: false,
    ...changes,
  };
}

/** An answer that says the call failed with this HTTP status. */
export function failedAnswer(status: number, message = `status ${status}`): RpcAnswer {
  return { data: null, error: { message }, status };
}
