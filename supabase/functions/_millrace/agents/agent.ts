import type { z } from 'zod';
import type { PipelineDefinition } from '../define/define-pipeline.ts';
import type { ModelTurn, NewTurn, Turn } from '../engine/engine-contract.ts';
import { PermanentError, storableText } from '../errors.ts';
import { strictForm } from '../model/answer-form.ts';
import { answerFormat, type ModelService, model } from '../model/model.ts';
import { createResponse } from '../model/model-client.ts';
import type { Provider } from '../model/model-settings.ts';
import { ownSignal } from '../model/own-signal.ts';
import { type Prompt, promptVersion } from '../model/prompt.ts';
import { responseFault, usageOf } from '../model/read-answer.ts';
import type { SettingsGroup } from '../settings.ts';
import type { StageRun } from '../stage/agent-checkpoints.ts';
import { defineStage, HandedBack, type HandlerContext, type Stage } from '../stage/stage.ts';
import {
  type AnswerCheck,
  type Call,
  finalAnswer,
  type GivenAnswer,
  openCalls,
  toInput,
} from './agent-conversation.ts';
import { attemptUsage, checkLimits, checkMeasurable, timeExceeded } from './agent-limits.ts';
import { type AgentTool, runTool } from './agent-tools.ts';

const LONGEST_MESSAGE = 100_000;

export interface AgentOptions<Input extends z.ZodType, Output extends z.ZodObject, Name extends string = string> {
  pipeline: PipelineDefinition<Name>;
  /** A stage of kind `agent`; its option `agent` limits turns, tokens, cost and time. */
  stage: NoInfer<Name>;
  input: Input;
  /** The form of the answer, which ends the conversation. */
  output: Output;
  prompt: Prompt;
  /** The first message to the model. */
  ask(input: z.output<Input>): string;
  tools(input: z.output<Input>): readonly AgentTool[];
  /**
   * Returns a sentence that names what in an answer contradicts the tools' findings; null where nothing does. The model
   * gets the sentence and answers again, at most twice and within the agent's limits. After that its answer stands, for
   * a later stage to doubt.
   */
  check?: AnswerCheck<z.output<Output>>;
  /** The model that is asked; without it, that of the settings LLM_…. */
  model?: ModelService;
  /** Groups of settings that the tools need; those of the model are needed anyway. */
  settings?: readonly SettingsGroup[];
}

/**
 * Defines a stage in which the model takes turns with tools until it answers in the form of `output`. A turn is one
 * answer of the model, or one call of a tool.
 *
 * Every turn is recorded when it ends. A retry after a crash goes on behind the last one and repeats no call whose
 * output was recorded. A turn should take less than half of the stage's timeout: once half of it is used, the attempt
 * goes back to the queue between two turns, which costs nothing. The model answers in the call, whatever LLM_MODE says.
 *
 * @example
 * ```ts
 * export const research = defineAgent({
 *   pipeline: orders,
 *   stage: 'research',
 *   input: z.object({ entity: z.object({ id: z.string() }) }),
 *   output: z.object({ inStock: z.boolean() }),
 *   prompt: { label: 'research-1', instructions: 'Find out whether all articles of the order are in stock.' },
 *   ask: ({ entity }) => `Look at order ${entity.id}.`,
 *   tools: () => [
 *     defineTool({
 *       name: 'read_stock',
 *       description: 'How many pieces of an article are in stock.',
 *       parameters: z.object({ article: z.string() }),
 *       run: ({ article }) => ({ article, pieces: 3 }),
 *     }),
 *   ],
 * });
 * ```
 */
export function defineAgent<Input extends z.ZodType, Output extends z.ZodObject, Name extends string>(
  options: AgentOptions<Input, Output, Name>,
): Stage {
  // An answer's form that no model takes keeps the stage from loading, which `check` and `sync` see.
  strictForm(options.output);
  return defineStage({
    pipeline: options.pipeline,
    stage: options.stage,
    input: options.input,
    output: options.output,
    handler: async (input, context) => (await converse(options, input, context)) as z.input<Output> | HandedBack,
    settings: [(options.model ?? model).settings, ...(options.settings ?? [])],
  });
}

async function converse<Input extends z.ZodType, Output extends z.ZodObject>(
  agent: AgentOptions<Input, Output>,
  input: z.output<Input>,
  context: HandlerContext,
): Promise<z.output<Output> | HandedBack> {
  const startedAt = Date.now();
  const conversation = new Conversation(agent, input, context, await context.checkpoints.load());
  for (let taken = 0; ; taken++) {
    const given = conversation.givenAnswer();
    if (given && (given.contradiction === null || !conversation.mayGoOn())) return given.answer;
    if (taken > 0 && Date.now() - startedAt >= context.timeoutMs / 2) return new HandedBack();
    await conversation.takeTurn();
  }
}

/** One attempt's part in a conversation. */
class Conversation<Input extends z.ZodType, Output extends z.ZodObject> {
  readonly turns: Turn[];
  private readonly model: ModelService;
  private readonly provider: Provider;
  private readonly tools: readonly AgentTool[];
  private readonly asked: string;
  private readonly beganAt: number;

  constructor(
    private readonly agent: AgentOptions<Input, Output>,
    input: z.output<Input>,
    private readonly context: HandlerContext,
    private readonly stageRun: StageRun,
  ) {
    this.model = agent.model ?? model;
    this.provider = this.model.provider(context.env);
    checkMeasurable(stageRun.limits, this.provider, this.model.prices);
    this.turns = [...stageRun.turns];
    this.beganAt = Date.now() - stageRun.elapsedMs;
    this.tools = agent.tools(input);
    const [first] = this.turns;
    // The entity's row may have changed since the conversation began.
    this.asked = (first?.kind === 'model' && first.content.asked) || firstMessage(agent.ask(input));
    this.report();
  }

  givenAnswer(): GivenAnswer<z.output<Output>> | undefined {
    return finalAnswer(this.turns, this.agent.output, this.agent.check);
  }

  /** Returns whether the limits allow another turn. Without one, the answer that has been paid for stands. */
  mayGoOn(): boolean {
    try {
      checkLimits(this.stageRun.limits, this.turns, Date.now() - this.beganAt);
      return true;
    } catch (error) {
      if (error instanceof PermanentError) return false;
      throw error;
    }
  }

  /** Runs the next open call of a tool or, when there is none, asks the model; records what came of it. */
  async takeTurn(): Promise<void> {
    this.context.signal.throwIfAborted();
    const { limits } = this.stageRun;
    const elapsedMs = Date.now() - this.beganAt;
    checkLimits(limits, this.turns, elapsedMs);
    const { signal, done } = ownSignal(
      this.context.signal,
      limits.max_seconds && limits.max_seconds * 1000 - elapsedMs,
    );
    const [call] = openCalls(this.turns);
    try {
      await (call ? this.call(call, signal) : this.askModel(signal));
    } catch (error) {
      if (signal.aborted && !this.context.signal.aborted) throw timeExceeded(limits, this.turns);
      throw error;
    } finally {
      done();
    }
  }

  private async call(call: Call, signal: AbortSignal): Promise<void> {
    const { env, traceId } = this.context;
    const seq = this.turns.length + 1;
    // The attempt of the first turn names the stage run.
    const idempotencyKey = `${traceId}-${this.turns[0]?.attempt}-${seq}`;
    const outcome = await runTool(this.tools, call, { signal, env, idempotencyKey });
    await this.record({
      seq,
      kind: 'tool',
      call_id: call.call_id,
      content: { name: call.name, arguments: call.arguments, ...outcome },
    });
  }

  private async askModel(signal: AbortSignal): Promise<void> {
    const { agent, context, provider } = this;
    const prompt = promptVersion(agent.prompt);
    const seq = this.turns.length + 1;
    const response = await createResponse(
      {
        model: provider.model,
        instructions: agent.prompt.instructions,
        input: toInput(this.asked, this.turns, agent.output, agent.check),
        tools: this.tools.map(({ name, description, parameters }) => ({
          type: 'function' as const,
          name,
          description,
          parameters: strictForm(parameters),
          strict: true,
        })),
        text: { format: answerFormat(agent.output, `${context.pipeline}_${context.stage}`) },
        metadata: {
          pipeline: context.pipeline,
          stage: context.stage,
          trace_id: context.traceId,
          turn: `${seq}`,
          prompt,
        },
        store: false,
      },
      provider,
      context,
      { signal, key: `${context.submissionKey}-${seq}` },
    );
    const fault = responseFault(response, provider.prefix);
    const content = {
      ...(seq === 1 ? { asked: this.asked } : {}),
      output: storable(response.output) as ModelTurn['content']['output'],
      // The answer is recorded, since it was paid for, and marked, since the conversation cannot continue from it.
      ...(fault ? { discarded: fault.code } : {}),
    };
    await this.record({ seq, kind: 'model', content, usage: usageOf(response, prompt, provider, this.model.prices) });
    if (fault) throw fault;
  }

  /** Records a finished turn even if the agent was stopped meanwhile, so that no retry repeats it. */
  private async record(turn: NewTurn): Promise<void> {
    await this.context.checkpoints.append(turn);
    this.turns.push({ ...turn, attempt: this.context.attempt });
    this.report();
  }

  private report(): void {
    const usage = attemptUsage(this.turns, this.context.attempt);
    if (usage) this.context.reportUsage(usage);
  }
}

/** Checks the first message: it is recorded with the first turn, which must not fail once it has been paid for. */
function firstMessage(text: string): string {
  if (text.length <= LONGEST_MESSAGE) return storableText(text);
  throw new PermanentError(
    'message_too_large',
    `The first message has ${text.length} characters, and at most ${LONGEST_MESSAGE} are taken: ` +
      'shorten it and give the agent a tool to read the rest.',
  );
}

function storable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, inner) => (typeof inner === 'string' ? storableText(inner) : inner));
}
