import { answerSchema, draftThatFits } from './answer-schema.ts';
import { type Conversation, outputsOf } from './conversation.ts';
import type { JsonSchema } from './json-schema.ts';
import { Material } from './material.ts';
import { pickTool, type Tool, type ToolChoice } from './pick-tool.ts';
import { wordsOf } from './relevance.ts';
import { objectsIn, readUnits, requestOf } from './source-text.ts';

/**
 * A request to the model: the conversation, a schema for the answer, and tools. Each `param` names a field for errors.
 */
export interface Task {
  conversation: Conversation;
  schema: { schema: JsonSchema; param: string } | undefined;
  tools: Tool[];
  toolChoice: ToolChoice;
}

/** The model's move: a text (JSON where a schema was given) or a call of a tool. */
export type Answer = { kind: 'text'; text: string } | { kind: 'call'; name: string; arguments: string };

const sentencesOfText = 3;

/** Answers by extracting from the conversation. Deterministic; throws ApiError 400 for a schema that cannot be filled. */
export function answer(task: Task): Answer {
  const { conversation } = task;
  const tool = pickTool(task.tools, task.toolChoice, conversation);
  if (tool) {
    const value = answerSchema(tool.parameters, materialOf(conversation, true), tool.param);
    return { kind: 'call', name: tool.name, arguments: JSON.stringify(value) };
  }
  const material = materialOf(conversation, false);
  if (!task.schema) return { kind: 'text', text: plainAnswer(conversation, material) };
  const { schema, param } = task.schema;
  const drafts = conversation.user.flatMap(objectsIn);
  const value = draftThatFits(schema, drafts, param) ?? answerSchema(schema, material, param);
  return { kind: 'text', text: JSON.stringify(value) };
}

function materialOf(conversation: Conversation, terse: boolean): Material {
  const said = [...conversation.user, ...conversation.assistant, ...outputsOf(conversation)];
  const outputs = outputsOf(conversation);
  // Answers with what tools have found; before they have found anything, with the user's own words.
  const own = readUnits(outputs.length > 0 && !terse ? [...outputs, ...conversation.user.filter(isMaterial)] : said);
  return new Material(own.length > 0 ? own : readUnits(conversation.instructions), said.join('\n'), terse);
}

// A short user message next to tool outputs is the request and no source.
function isMaterial(text: string): boolean {
  return requestOf(text) !== text || text.length > 400;
}

function plainAnswer(conversation: Conversation, material: Material): string {
  const asked = requestOf(conversation.user.at(-1) ?? '').slice(0, 1000);
  const best = material.rank({ name: wordsOf(asked), description: [] }).slice(0, sentencesOfText);
  return best
    .sort((a, b) => a - b)
    .map((index) => material.units[index]?.text)
    .join(' ');
}
