import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { ModelTurn, Turn } from '../engine/engine-contract.ts';
import { storable } from '../engine/storable.ts';
import { MisconfiguredError, messageOf, StageError } from '../errors.ts';
import { addUsage } from '../model/attempt-usage.ts';
import type { PriceTable } from '../model/model-prices.ts';
import { usageOfAnswer } from '../model/with-usage.ts';
import { parseJson } from '../parse-json.ts';
import type { HandlerContext } from '../stage/stage.ts';
import { checkLimits } from './agent-limits.ts';

/** The part of the AI SDK's LanguageModel that is called. */
interface LanguageModel {
  modelId: string;
  // The options and answers of each version of the AI SDK have types of their own.
  // biome-ignore lint/suspicious/noExplicitAny: a narrower type would refuse the other versions
  doGenerate(options: any): PromiseLike<any>;
}

/** The part of the AI SDK's Tool that is called. */
interface Tool {
  // biome-ignore lint/suspicious/noExplicitAny: each tool has arguments of its own
  execute?: ((input: any, options: any) => unknown) | undefined;
}

/** An answer of the model, as far as it is read here. */
interface Generated {
  content: { type: string; text?: string; toolCallId?: string; toolName?: string; input?: string }[];
  finishReason: unknown;
  usage: unknown;
  providerMetadata?: unknown;
  response?: { id?: string; timestamp?: Date | string; modelId?: string };
}

type Context = Pick<HandlerContext, 'attempt' | 'checkpoints' | 'reportUsage' | 'signal'>;

/**
 * Records the turns of an agent of the AI SDK, so that a retry goes on behind the last one: returns its model and tools, to be given
 * to generateText() or ToolLoopAgent in their place. An answer to the same question, or an output of the same call, that an earlier
 * try has recorded is returned again, and costs nothing. The limits of a stage of kind `agent` hold, and the usage is reported.
 *
 * A tool's output is what JSON keeps of it. The question must not hold what differs from try to try, such as the time.
 *
 * `prices`: the project's own, which count before the published ones.
 *
 * @example
 * ```ts
 * const answerOf = async (client: { modelId: string; doGenerate(asked: object): Promise<object> }, context: HandlerContext) => {
 *   const tools = { read_stock: { execute: async ({ article }: { article: string }) => ({ article, pieces: 3 }) } };
 *   return await recordTurns({ model: client, tools }, context); // generateText({ ...recorded, prompt, stopWhen })
 * };
 * ```
 */
export async function recordTurns<Model extends LanguageModel, Tools extends Record<string, Tool>>(
  { model, tools, prices }: { model: Model; tools: Tools; prices?: PriceTable },
  context: Context,
): Promise<{ model: Model; tools: Tools }> {
  const began = Date.now();
  const { turns, limits, elapsedMs } = await context.checkpoints.load();
  const record = new TurnRecord(turns, context);
  const doGenerate: Model['doGenerate'] = async (options) => {
    const question = digest([options.prompt, options.tools, options.responseFormat]);
    const former = record.answerTo(question);
    if (former) return former;
    record.throwFault();
    checkLimits(limits, record.turns, Date.now() - began + elapsedMs);
    const answer = await model.doGenerate({ abortSignal: context.signal, ...options });
    const name = answer.response?.modelId ?? model.modelId;
    return record.keepAnswer(question, answer, { ...usageOfAnswer(answer, { model: name, prices }), call: 'chat' });
  };
  const doStream = () => {
    throw new MisconfiguredError(
      'recordTurns() records answers that come whole: use generateText(), not streamText().',
    );
  };
  const changed: Record<PropertyKey, unknown> = { doGenerate, doStream };
  return {
    // The model's own getters must see the model itself.
    model: new Proxy(model, { get: (of, name) => changed[name] ?? Reflect.get(of, name, of) }),
    tools: Object.fromEntries(
      Object.entries(tools).map(([name, tool]) => [name, record.recorded(name, tool)]),
    ) as Tools,
  };
}

/** The turns of one stage run: those of earlier tries, and those that this attempt records. */
class TurnRecord {
  /** The earlier turns that this attempt has not repeated yet. */
  private earlier: Turn[];
  /** The error that ends the attempt, which the AI SDK would give the model as the output of a tool. */
  private fault: unknown;
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    readonly turns: Turn[],
    private readonly context: Context,
  ) {
    this.earlier = [...turns];
    // An attempt that lost its lease goes on with what it has paid for.
    for (const turn of turns) {
      if (turn.kind === 'model' && turn.attempt === context.attempt) addUsage(context, turn.usage);
    }
  }

  throwFault(): void {
    if (this.fault !== undefined) throw this.fault;
  }

  answerTo(question: string): unknown {
    const turn = this.take((one) => one.kind === 'model' && keptIn(one)?.question === question);
    return turn?.kind === 'model' ? answerOf(keptIn(turn)?.answer as Generated) : undefined;
  }

  async keepAnswer(question: string, answer: Generated, usage: ModelTurn['usage']): Promise<unknown> {
    const { content, finishReason, providerMetadata, response: { id, timestamp, modelId } = {} } = answer;
    const response = { id, timestamp, modelId };
    const kept = asJson({ content, finishReason, usage: answer.usage, providerMetadata, response, warnings: [] });
    const output = [...content.flatMap(itemOf), { type: 'ai_sdk', question, answer: kept }];
    // A new answer makes new calls, even where their ids are those of calls in earlier turns.
    const calls = content.map(({ toolCallId }) => toolCallId);
    this.earlier = this.earlier.filter((turn) => turn.kind !== 'tool' || !calls.includes(turn.call_id));
    addUsage(this.context, usage);
    await this.append({ kind: 'model', content: { output }, usage });
    return answerOf(kept as Generated);
  }

  /** Returns the tool with an execute() that records its outputs, or gives back the one that is recorded for a call. */
  recorded<T extends Tool>(name: string, tool: T): T {
    const { execute } = tool;
    if (!execute) return tool;
    return {
      ...tool,
      execute: async (input: unknown, options: { toolCallId: string }) => {
        const call = { call_id: options.toolCallId, arguments: JSON.stringify(input) ?? '' };
        const former = this.outputOf(name, call);
        if (former) return givenBack(former);
        const outcome = await this.run(() => execute.call(tool, input, options));
        const { call_id } = call;
        await this.append({ kind: 'tool', call_id, content: { name, arguments: call.arguments, ...outcome } });
        return givenBack(outcome);
      },
    };
  }

  private outputOf(name: string, call: { call_id: string; arguments: string }) {
    const turn = this.take(
      (one) =>
        one.kind === 'tool' &&
        one.call_id === call.call_id &&
        one.content.name === name &&
        one.content.arguments === call.arguments,
    );
    return turn?.kind === 'tool' ? turn.content : undefined;
  }

  private async run(execute: () => unknown): Promise<{ output: string; failed: boolean }> {
    try {
      return { output: JSON.stringify(asJson(await lastOf(execute()))), failed: false };
    } catch (error) {
      // No model can correct a setting or go on after the attempt was stopped.
      if (error instanceof MisconfiguredError || this.context.signal.aborted) this.end(error);
      return { output: JSON.stringify(error instanceof StageError ? error.message : messageOf(error)), failed: true };
    }
  }

  private take(fits: (turn: Turn) => boolean): Turn | undefined {
    const at = this.earlier.findIndex(fits);
    return at < 0 ? undefined : this.earlier.splice(at, 1)[0];
  }

  /** Tools run side by side, and turns are numbered one after the other. */
  private async append(turn: Unnumbered): Promise<void> {
    const appended = this.last.then(async () => {
      const numbered = storable({ ...turn, seq: (this.turns.at(-1)?.seq ?? 0) + 1 });
      await this.context.checkpoints.append(numbered);
      this.turns.push({ ...numbered, attempt: this.context.attempt });
    });
    this.last = appended.catch(() => {});
    await appended.catch((error) => this.end(error));
  }

  private end(error: unknown): never {
    this.fault ??= error;
    throw error;
  }
}

type Unnumbered = Turn extends infer T ? (T extends Turn ? Omit<T, 'attempt' | 'seq'> : never) : never;

/** Returns the item of a model turn from which the AI SDK gets its answer again. */
function keptIn(turn: ModelTurn): Record<string, unknown> | undefined {
  return turn.content.output.find(({ type }) => type === 'ai_sdk');
}

/** Returns a part of an answer, in the form in which the operator's page shows the turns of any agent. */
function itemOf(part: Generated['content'][number]): ModelTurn['content']['output'] {
  if (part.type === 'text') return [{ type: 'message', content: [{ type: 'output_text', text: part.text }] }];
  if (part.type !== 'tool-call') return [];
  return [{ type: 'function_call', call_id: part.toolCallId, name: part.toolName, arguments: part.input }];
}

/** Returns a recorded answer as the AI SDK takes it, with its time as a Date. */
function answerOf(kept: Generated): unknown {
  const { timestamp } = kept.response ?? {};
  return { ...kept, response: { ...kept.response, ...(timestamp && { timestamp: new Date(timestamp) }) } };
}

/** Returns the output of a tool, or throws its error, the same at each try. */
function givenBack({ output, failed }: { output: string; failed: boolean }): unknown {
  const value = parseJson(output);
  if (failed) throw new Error(String(value));
  return value;
}

/** Returns the output of a tool, or the last part of one that comes in parts. */
async function lastOf(output: unknown): Promise<unknown> {
  const given = await output;
  if (typeof given !== 'object' || given === null || !(Symbol.asyncIterator in given)) return given;
  let last: unknown;
  for await (const part of given as AsyncIterable<unknown>) last = part;
  return last;
}

/** Returns a value as JSON keeps it, with bytes in base64. */
function asJson(value: unknown): unknown {
  const json = JSON.stringify(value ?? null, (_, inner) =>
    inner instanceof Uint8Array ? Buffer.from(inner).toString('base64') : inner,
  );
  return storable(JSON.parse(json));
}

function digest(question: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(asJson(question)))
    .digest('hex');
}
