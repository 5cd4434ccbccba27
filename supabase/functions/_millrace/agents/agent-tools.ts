import type { z } from 'zod';
import { classify, MisconfiguredError, messageOf, PermanentError, storableText } from '../errors.ts';
import { createLog } from '../log.ts';
import { parseForm, strictForm } from '../model/answer-form.ts';
import { parseJson } from '../parse-json.ts';
import type { Env } from '../settings.ts';
import { describeFault, storageFault } from '../stage/validate-result.ts';

/** Context that a tool gets beside its arguments. */
export interface ToolContext {
  /** Aborted when the agent is stopped. */
  signal: AbortSignal;
  env: Env;
  /** The key of the call. A call that a crash left without a recorded output is repeated under the same key. */
  idempotencyKey: string;
}

/** A tool that the model may call. */
export interface AgentTool {
  name: string;
  description: string;
  parameters: z.ZodObject;
  run(args: unknown, context: ToolContext): unknown;
}

/** Output of a tool's call, as the model reads it. `failed`: the output is an error message. */
export interface ToolOutput {
  output: string;
  failed: boolean;
}

const LONGEST_OUTPUT = 100_000;

/**
 * Defines a tool that an agent's model may call. Throws where `parameters` cannot be written as a strict JSON schema.
 *
 * `run` gets arguments that fit `parameters`. It returns text, or a value that JSON can hold, of at most 100,000
 * characters. The model reads the message of an error that `run` throws; only a MisconfiguredError ends the attempt.
 *
 * @example
 * ```ts
 * const readStock = defineTool({
 *   name: 'read_stock',
 *   description: 'How many pieces of an article are in stock.',
 *   parameters: z.object({ article: z.string() }),
 *   run: async ({ article }, { signal }) => {
 *     const answer = await fetch(`https://stock.example.com/${encodeURIComponent(article)}`, { signal });
 *     return await answer.text();
 *   },
 * });
 * ```
 */
export function defineTool<P extends z.ZodObject>(tool: {
  name: string;
  description: string;
  parameters: P;
  run(args: z.output<P>, context: ToolContext): unknown;
}): AgentTool {
  strictForm(tool.parameters);
  return { ...tool, run: tool.run as AgentTool['run'] };
}

/**
 * Runs the tool that the model called. A failure becomes the output, so that the model can act on it. Throws a
 * MisconfiguredError, which no model can correct, and the error of a tool that was aborted by `signal`.
 *
 * @internal
 */
export async function runTool(
  tools: readonly AgentTool[],
  call: { name: string; arguments: string },
  context: ToolContext,
): Promise<ToolOutput> {
  const tool = tools.find(({ name }) => name === call.name);
  if (!tool) {
    const names = tools.map(({ name }) => name).join(', ');
    return failure(`There is no tool ${call.name}: the tools are ${names || 'none'}.`);
  }
  const given = parseJson(call.arguments);
  const unfit = storageFault(given, 'arguments');
  if (unfit) return failure(unfit);
  const args = parseForm(tool.parameters, given);
  if (!args.success) return failure(`The arguments do not fit: ${describeFault(args.error, given, 'arguments')}.`);
  try {
    const output = textOf(await untilAborted(tool.run(args.data, context), context.signal));
    if (output.length <= LONGEST_OUTPUT) return { output, failed: false };
    return failure(`The output has ${output.length} characters, and at most ${LONGEST_OUTPUT} fit: ask for less.`);
  } catch (error) {
    if (error instanceof MisconfiguredError || context.signal.aborted) throw error;
    const { message, detail } = classify(error);
    if (detail) createLog({ tool: call.name }).error('a tool failed', { error: detail });
    return failure(message);
  }
}

/** Settles as `work` does, but rejects as soon as the signal is aborted: a tool may ignore the signal. */
async function untilAborted(work: unknown, signal: AbortSignal): Promise<unknown> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function textOf(value: unknown): string {
  try {
    return storableText(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null'));
  } catch (error) {
    throw new PermanentError('invalid_output', `The tool's output is no JSON: ${messageOf(error)}`);
  }
}

function failure(message: string): ToolOutput {
  return { output: JSON.stringify({ error: storableText(message) }), failed: true };
}
