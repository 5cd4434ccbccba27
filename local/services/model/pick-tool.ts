import { type Conversation, outputsOf } from './conversation.ts';
import type { JsonSchema, Schema } from './json-schema.ts';
import { wordsOf } from './relevance.ts';
import { requestOf } from './source-text.ts';

/** A function the model may call; `param` names its parameters' field in the request. */
export interface Tool {
  name: string;
  description: string;
  parameters: JsonSchema;
  param: string;
}

/** Whether a tool may be called, has to be, or which one. */
export type ToolChoice = { mode: 'none' | 'auto' | 'required' } | { mode: 'function'; name: string };

/**
 * Picks the tool whose words meet most of what the user asked for and no output has answered yet. Each tool is called
 * once in a turn, unless a call is required. Returns undefined when it is time to answer.
 */
export function pickTool(tools: Tool[], choice: ToolChoice, conversation: Conversation): Tool | undefined {
  if (choice.mode === 'none' || tools.length === 0) return undefined;
  if (choice.mode === 'function') return tools.find(({ name }) => name === choice.name);
  const called = new Set(conversation.calls.map(({ name }) => name));
  const open = tools.filter(({ name }) => !called.has(name));
  const best = bestOf(open, conversation);
  if (best) return best;
  return choice.mode === 'required' ? (open[0] ?? tools[0]) : undefined;
}

function bestOf(tools: Tool[], conversation: Conversation): Tool | undefined {
  const text = conversation.user.join('\n');
  const asked = new Set(wordsOf(requestOf(conversation.user.at(-1) ?? '').slice(0, 2000)));
  const answered = new Set(outputsOf(conversation).flatMap(wordsOf));
  const left = [...asked].filter((word) => !answered.has(word));
  const known = `${text}\n${outputsOf(conversation).join('\n')}`;
  return tools
    .map((tool, index) => ({ tool, index, score: isGrounded(tool.parameters, known) ? overlap(tool, left) : 0 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index)[0]?.tool;
}

function overlap(tool: Tool, words: string[]): number {
  const name = new Set(wordsOf(tool.name));
  const rest = new Set(wordsOf(`${tool.description} ${Object.keys(tool.parameters.properties ?? {}).join(' ')}`));
  return words.reduce((sum, word) => sum + (name.has(word) ? 2 : rest.has(word) ? 1 : 0), 0);
}

// Returns whether a text names what a tool requires, such as an address or an id: otherwise the tool is of no use.
function isGrounded({ properties = {}, required = [] }: JsonSchema, text: string): boolean {
  return required.every((key) => {
    const schema: Schema | undefined = properties[key];
    const format = typeof schema === 'object' ? schema.format : undefined;
    if (format === 'uri' || /(^|_)ur[il]$/i.test(key)) return /https?:\/\//.test(text);
    if (format === 'email') return text.includes('@');
    return /(^|_)id$/i.test(key) || /[a-z]Id$/.test(key) ? /\d/.test(text) : true;
  });
}
