import { ApiError } from './api-error.ts';

const knownWords = [
  ...['type', 'enum', 'const', 'anyOf', 'allOf', '$ref', '$defs', 'definitions', 'title', 'description'],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'format', 'default'],
];

/** Refuses what Anthropic's structured output refuses: open objects, and words that bound lengths, numbers and patterns. */
export function checkMessagesSchema(schema: unknown, param: string, path = ''): void {
  if (typeof schema !== 'object' || schema === null) return;
  const given = schema as Record<string, unknown>;
  const where = path || 'the schema itself';
  const refuse = (reason: string) => {
    throw new ApiError(400, `${param}: ${where}: ${reason}`, param);
  };
  const strange = Object.keys(given).find((word) => !knownWords.includes(word));
  if (strange) refuse(`For '${String(given.type)}' type, property '${strange}' is not supported`);
  if (Number(given.minItems ?? 0) > 1)
    refuse("For 'array' type, 'minItems' values other than 0 or 1 are not supported");
  if (given.type === 'object' && given.additionalProperties !== false) {
    refuse("For 'object' type, 'additionalProperties' must be explicitly set to false");
  }
  for (const word of ['properties', '$defs'] as const) {
    for (const [name, part] of Object.entries((given[word] as object | undefined) ?? {}))
      checkMessagesSchema(part, param, path ? `${path}.${name}` : name);
  }
  checkMessagesSchema(given.items, param, `${path}[]`);
  for (const part of (given.anyOf as unknown[] | undefined) ?? []) checkMessagesSchema(part, param, path);
}
