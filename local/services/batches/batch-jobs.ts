import { randomBytes } from 'node:crypto';

/** Tokens of each answer, so that costs can be added up. */
export const tokens = { input: 1_000, output: 100 };

/** How long a provider works at a batch, in ms; then the batch expires. */
const dayMs = 86_400_000;

/** A line of a batch: its custom_id and the body of its question. */
export interface Line {
  id: string;
  body: Record<string, unknown>;
}

/** How a batch goes, decided once its answers are wanted. */
export interface Plan {
  /** How many polls say that it is under way. */
  polls?: number;
  /** From which poll on a batch that has ended names its files (OpenAI). */
  filesAfter?: number;
  /** How it ends. */
  end?: 'completed' | 'expired' | 'cancelled' | 'running';
  /** How many of its lines are answered before that. */
  answered?: number;
  /** Numbers of lines for which the file is refused (OpenAI), from 1. */
  invalid?: number[];
  /** The error of a line in the place of its answer. */
  errorOf?(body: Record<string, unknown>): { status: number; code: string; message: string } | undefined;
  /** Changes the lines of the results before they are sent. */
  results?(lines: string[]): string[];
}

export interface Batch {
  id: string;
  api: 'responses' | 'chat' | 'messages';
  lines: Line[];
  metadata: Record<string, string>;
  /** The file that its lines came in (OpenAI). */
  file: string | null;
  createdAt: number;
  polls: number;
  isCancelled: boolean;
  plan: Plan;
}

const newId = (prefix: string) => `${prefix}_${randomBytes(12).toString('hex')}`;

/** The files and batches of one provider, in memory. */
export class BatchJobs {
  readonly files = new Map<string, string>();
  readonly batches: Batch[] = [];
  /** How often each question was answered, by its text: a question that is bought again has another custom_id. */
  readonly bought = new Map<string, number>();
  /** The time at which batches are created, as the provider has it. */
  now = Date.now();

  constructor(
    private readonly planOf: (batch: Batch, at: number) => Plan,
    private readonly answerTo: (body: Record<string, unknown>) => string,
  ) {}

  keepFile(text: string): string {
    const id = newId('file');
    this.files.set(id, text);
    return id;
  }

  begin(
    api: Batch['api'],
    lines: Line[],
    { metadata = {}, file = null }: Partial<Pick<Batch, 'metadata' | 'file'>> = {},
  ): Batch {
    const id = newId(api === 'messages' ? 'msgbatch' : 'batch');
    const begun = { id, api, lines, metadata, file, createdAt: this.now };
    const batch: Batch = { ...begun, polls: 0, isCancelled: false, plan: {} };
    batch.plan = this.planOf(batch, this.batches.length);
    this.batches.unshift(batch);
    if (!batch.plan.invalid) {
      for (const line of this.answered(batch)) if (!batch.plan.errorOf?.(line.body)) this.buy(line.body);
    }
    return batch;
  }

  buy(body: Record<string, unknown>): void {
    const key = JSON.stringify(body.input ?? body.messages);
    this.bought.set(key, (this.bought.get(key) ?? 0) + 1);
  }

  /** Returns the lines of a batch that were answered before it ended. */
  answered({ lines, plan }: Batch): Line[] {
    return lines.slice(0, plan.answered ?? lines.length);
  }

  /** Returns the state of a batch, as of its next poll. */
  stateOf(batch: Batch): 'rejected' | 'running' | 'completed' | 'expired' | 'cancelled' {
    const { plan, polls, isCancelled, createdAt } = batch;
    if (plan.invalid) return 'rejected';
    if (isCancelled) return 'cancelled';
    if (plan.end === 'running') return this.now - createdAt < dayMs ? 'running' : 'expired';
    if (polls <= (plan.polls ?? 1)) return 'running';
    return plan.end ?? 'completed';
  }

  /** Returns the body of the answer to a question, in the form of its API. */
  answerOf(api: Batch['api'], body: Record<string, unknown>, tier = 'batch'): Record<string, unknown> {
    const text = this.answerTo(body);
    const model = String(body.model);
    const { input, output } = tokens;
    if (api === 'messages') {
      const usage = { input_tokens: input, output_tokens: output, service_tier: tier };
      const content = [{ type: 'text', text }];
      return { id: newId('msg'), type: 'message', role: 'assistant', model, content, stop_reason: 'end_turn', usage };
    }
    if (api === 'chat') {
      const message = { role: 'assistant', content: text, refusal: null };
      const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      return { id: newId('chatcmpl'), object: 'chat.completion', created: 0, model, choices, usage };
    }
    const content = [{ type: 'output_text', text, annotations: [] }];
    const output_items = [{ id: newId('msg'), type: 'message', role: 'assistant', status: 'completed', content }];
    const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
    const whole = { id: newId('resp'), object: 'response', created_at: 0, status: 'completed', model, usage };
    return { ...whole, error: null, incomplete_details: null, output: output_items, metadata: {} };
  }
}
