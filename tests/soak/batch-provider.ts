// The stand-in of both APIs for batches, with faults that a campaign draws: of its calls, and of how batches go.
import { randomUUID } from 'node:crypto';
import type { Batch, Plan } from '../../local/services/batches/batch-jobs.ts';
import { type Action, type Fault, startBatches } from '../../local/services/batches/server.ts';
import { randomNumbers } from '../support/engine/random-session.ts';

type Random = (bound: number) => number;
type Body = Record<string, unknown>;

/** How many batches and calls of a campaign may go wrong, so that each campaign ends. */
const mayFail = { batches: 14, calls: 60 };
/** The provider lets a call in so many go wrong. */
const every = 6;
/** US dollars for a million tokens at the direct price. */
export const price = { input: 2, output: 10 };

interface Course {
  /** How often it is drawn in comparison with the others. */
  weight: number;
  /** Whether the batch's questions must be in a file of their own, as OpenAI has it. */
  needsFile?: true;
  draw(batch: Batch, random: Random): Plan;
}

const some = ({ lines }: Batch, random: Random) => random(lines.length + 1);

/** How a batch may go, by what the report calls it. */
const courses: Record<string, Course> = {
  'batches as they should be': { weight: 4, draw: (_, random) => ({ polls: random(3) }) },
  'batches expired': { weight: 3, draw: (batch, random) => ({ end: 'expired', answered: some(batch, random) }) },
  'batches cancelled': { weight: 2, draw: (batch, random) => ({ end: 'cancelled', answered: some(batch, random) }) },
  'batches without end': { weight: 2, draw: (batch, random) => ({ end: 'running', answered: some(batch, random) }) },
  'batches with failed lines': { weight: 3, draw: failLines },
  'batches with results in disorder': { weight: 3, draw: () => ({ results: disorder }) },
  'batches whose files come late': {
    weight: 2,
    needsFile: true,
    draw: (_, random) => ({ filesAfter: 2 + random(3) }),
  },
  'files refused for a line': {
    weight: 2,
    needsFile: true,
    draw: ({ lines }, random) => ({ invalid: [1 + random(lines.length)] }),
  },
  'files refused': { weight: 1, needsFile: true, draw: () => ({ invalid: [Number.NaN] }) },
};
const calls = {
  refused: 'calls of the provider refused',
  lost: 'answers of the provider lost',
  cut: 'results cut',
};

/** The faults of batches and of the calls to their provider, as the report calls them. */
export const batchFaults = [...Object.keys(courses).slice(1), ...Object.values(calls)];

function failLines({ api, lines }: Batch, random: Random): Plan {
  const isMessages = api === 'messages';
  const fault =
    random(2) === 0
      ? { status: 400, code: isMessages ? 'invalid_request_error' : 'context_length_exceeded', message: 'too long' }
      : { status: 500, code: isMessages ? 'api_error' : 'server_error', message: 'out of order' };
  const failed = new Set(lines.filter(() => random(6) === 0).map(({ body }) => textOf(body)));
  return { errorOf: (body) => (failed.has(textOf(body)) ? fault : undefined) };
}

/** Results in reverse, some of them twice, and one of a stranger's. */
function disorder(lines: string[]): string[] {
  const stranger = (lines[0] ?? '').replace(/"custom_id":"[^"]+"/, '"custom_id":"someone-else"');
  return [...lines.slice(0, 5), stranger, ...lines.toReversed()];
}

function textOf({ input, messages }: Body): string {
  const said = (input ?? (messages as { content: unknown }[]).at(-1)?.content) as string | { text: string }[];
  return typeof said === 'string' ? said : (said[0]?.text ?? '');
}

/** A question, as remark-pipelines.ts asks it. */
const questionIn = (text: string): { stage: string; id: number; key: string } => JSON.parse(text);

export class BatchProvider {
  /** The receipts, by the idempotency key that the question names. */
  readonly paid = new Map<string, { receipt: string; what: Set<string> }>();
  /** How often each course and fault came. */
  readonly counts = new Map<string, number>();
  /** Called once the next call of this kind is worked, before it is answered. */
  trap: { action: Action; spring(): Promise<void> } | undefined;
  #random: Random = () => 0;
  #left = { batches: 0, calls: 0 };
  #site!: Awaited<ReturnType<typeof startBatches>>;

  /** Starts it; `now` is the time that the project's database has. */
  static async start(now: () => Promise<number>): Promise<BatchProvider> {
    const provider = new BatchProvider();
    provider.#site = await startBatches({
      now,
      plan: (batch) => provider.#plan(batch),
      fault: (action) => provider.#fault(action),
      worked: (action) => provider.#worked(action),
      answer: (body) => provider.#answer(textOf(body)),
    });
    return provider;
  }

  /** Settings that lead the stages of remarks to it. */
  get env(): Record<string, string> {
    const of = (name: string, api: string) => ({
      [`${name}_URL`]: `${this.#site.url}/v1`,
      [`${name}_API`]: api,
      [`${name}_MODEL`]: 'chaos',
      [`${name}_PRICE_INPUT`]: String(price.input),
      [`${name}_PRICE_OUTPUT`]: String(price.output),
    });
    return { ...of('JUDGE', 'responses'), ...of('REPLY', 'messages') };
  }

  /** Forgets the campaign before; from now on faults are drawn from the seed. */
  forget(seed: number): void {
    const { jobs } = this.#site;
    jobs.batches.length = 0;
    jobs.files.clear();
    jobs.bought.clear();
    this.paid.clear();
    this.counts.clear();
    this.trap = undefined;
    this.#random = randomNumbers(seed);
    this.#left = { ...mayFail };
  }

  /** From now on nothing goes wrong. */
  behave(): void {
    this.trap = undefined;
    this.#left = { batches: 0, calls: 0 };
  }

  /** By the text of each question, how often its answer was bought: in batches, and directly. */
  bought(): Map<string, { key: string; batches: number; directly: number }> {
    const { jobs } = this.#site;
    const found = new Map<string, { key: string; batches: number; directly: number }>();
    for (const [body, all] of jobs.bought) {
      const parsed = JSON.parse(body);
      const text = textOf(Array.isArray(parsed) && 'role' in parsed[0] ? { messages: parsed } : { input: parsed });
      found.set(text, { key: questionIn(text).key, batches: 0, directly: all });
    }
    for (const batch of jobs.batches) {
      if (batch.plan.invalid) continue;
      for (const { body } of jobs.answered(batch)) {
        const one = found.get(textOf(body));
        if (!one || batch.plan.errorOf?.(body)) continue;
        one.batches += 1;
        one.directly -= 1;
      }
    }
    return found;
  }

  /** Each batch that was begun, with its time by the engine's clock. */
  begun(): object[] {
    return this.#site.jobs.batches.map(({ id, metadata, lines, createdAt, polls, isCancelled }) => {
      const { millrace, round } = metadata;
      return { id, millrace, round, lines: lines.length, at: new Date(createdAt).toISOString(), polls, isCancelled };
    });
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  #plan(batch: Batch): Plan {
    if (this.#left.batches === 0) return {};
    this.#left.batches -= 1;
    const possible = Object.entries(courses).filter(([, { needsFile }]) => !needsFile || batch.api !== 'messages');
    const drawn = possible.flatMap(([name, { weight }]) => Array<string>(weight).fill(name));
    const name = drawn[this.#random(drawn.length)] as string;
    this.#count(name);
    return (courses[name] as Course).draw(batch, this.#random);
  }

  #fault(action: Action): Fault | undefined {
    if (this.#left.calls === 0) return undefined;
    this.#left.calls -= 1;
    if (this.#random(every) !== 0) return undefined;
    const kind = this.#random(3);
    if (kind === 1 && action === 'results') {
      this.#count(calls.cut);
      return 'cut';
    }
    // An answer that was paid for directly and is lost is paid for again: nothing names it.
    if (kind === 2 && action !== 'direct') {
      this.#count(calls.lost);
      return 'lost';
    }
    this.#count(calls.refused);
    return { status: this.#random(2) === 0 ? 429 : 500 };
  }

  async #worked(action: Action): Promise<void> {
    if (this.trap?.action !== action) return;
    const { spring } = this.trap;
    this.trap = undefined;
    await spring();
  }

  #answer(text: string): string {
    const { stage, id, key } = questionIn(text);
    const known = this.paid.get(key) ?? { receipt: randomUUID(), what: new Set() };
    this.paid.set(key, known);
    known.what.add(`/${stage}/${id}`);
    return JSON.stringify({ stage, key, receipt: known.receipt });
  }

  stop(): Promise<void> {
    return this.#site.stop();
  }
}
