import { z } from 'zod';
import { keepCheckpoints } from '../../../packages/test/kept-turns.ts';
import { defineAgent } from '../../../supabase/functions/_millrace/agents/agent.ts';
import type { AnswerCheck } from '../../../supabase/functions/_millrace/agents/agent-conversation.ts';
import { type AgentTool, defineTool } from '../../../supabase/functions/_millrace/agents/agent-tools.ts';
import type { Usage } from '../../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { HandlerContext } from '../../../supabase/functions/_millrace/stage/stage.ts';
import { makeContext } from '../context.ts';
import type { Reply } from '../http-server.ts';
import { testPipeline } from './make-drain.ts';
import { modelResponse, startModelServer } from './model-server.ts';

let calls = 0;

/** A response that calls tools, each given as `[name, arguments]`. */
export function calling(...wanted: [string, unknown][]): Reply {
  const output = wanted.map(([name, args]) => ({
    type: 'function_call',
    id: 'fc_1',
    status: 'completed',
    call_id: `call_${++calls}`,
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
  }));
  return { json: modelResponse('', { output }) };
}

/** A response with this text as its answer. */
export const answering = (text: unknown, changes: object = {}): Reply => ({ json: modelResponse(text, changes) });

/** A model that replies with these one after the other, and leaves what comes after them without an answer. */
export function scriptedModel(...replies: Reply[]) {
  return startModelServer(() => replies.shift() ?? null);
}

/** A tool `look` that counts how often it looked at each page. */
export function lookTool(look: (page: number) => unknown = (page) => `page ${page}`) {
  const looked: number[] = [];
  const tool = defineTool({
    name: 'look',
    description: 'Looks at a page',
    parameters: z.object({ page: z.number() }),
    run({ page }) {
      looked.push(page);
      return look(page);
    },
  });
  return { tool, looked };
}

/** An agent over the test pipeline that asks to find the item's id (or what is given) and answers `{ done }`. */
export function makeAgent(tools: AgentTool[], asked?: string, check?: AnswerCheck<{ done: number }>) {
  return defineAgent({
    pipeline: testPipeline,
    stage: 'work',
    input: z.object({ entity: z.object({ id: z.number() }) }),
    output: z.object({ done: z.number() }),
    prompt: { label: 'find-1', instructions: 'Find it.' },
    ask: ({ entity }) => asked ?? `Find ${entity.id}.`,
    tools: () => tools,
    ...(check ? { check } : {}),
  });
}

/** Runs an agent once, as one attempt; `usages` are what it reported, the last one counting. */
export function runAgent(
  env: Record<string, string>,
  tools: AgentTool[],
  options: {
    id?: number;
    kept?: ReturnType<typeof keepCheckpoints>;
    context?: Partial<HandlerContext>;
    check?: AnswerCheck<{ done: number }>;
  } = {},
) {
  const usages: Usage[] = [];
  const kept = options.kept ?? keepCheckpoints();
  const changes = { checkpoints: kept, reportUsage: (usage: Usage) => usages.push(usage), ...options.context };
  const { context } = makeContext(env, changes);
  const input = { entity: { id: options.id ?? 7 } };
  const outcome = Promise.resolve(makeAgent(tools, undefined, options.check).handler(input, context));
  return { outcome, kept, usages };
}
