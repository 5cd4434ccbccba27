import { z } from 'zod';

/** A JSON schema, or a part of it. */
type JsonSchema = Record<string, unknown>;

/** Kinds of zod's schemas that the strict form cannot say, each with the kind that says the same. */
const refusedKinds: Record<string, string> = {
  any: 'write what it is, such as z.string()',
  bigint: 'write z.int(), or z.string() for its digits',
  custom: 'write z.string() with .refine()',
  date: 'write z.iso.date() or z.iso.datetime()',
  file: 'write z.string() for its name',
  function: 'leave it out',
  map: 'write z.array(z.object({ name: z.string(), value: … }))',
  nan: 'write z.number().nullable()',
  never: 'leave it out',
  promise: 'write what it resolves to',
  record: 'write z.array(z.object({ name: z.string(), value: … }))',
  set: 'write z.array()',
  symbol: 'write z.enum()',
  transform: 'write what the model is to answer, and put .transform() behind it',
  tuple: 'write z.object() with a field for each',
  undefined: 'write z.null()',
  unknown: 'write what it is, such as z.string()',
  void: 'write z.null()',
};
const refusedWords = ['allOf', 'not', 'patternProperties', 'prefixItems', 'propertyNames'];
const knownFormats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'];
const lookaround = /\(\?(?:[=!]|<[=!])/;
// Keywords that the strict form does not know: zod checks them once the answer is there.
const leftToZod = ['default', 'contentEncoding', 'contentMediaType', 'format', 'pattern', 'readOnly'];

const known = new WeakMap<z.ZodType, JsonSchema>();

/**
 * Returns the strict JSON schema by which a model answers in the form of `schema`. An optional field becomes nullable,
 * and a transform is described by its input. Formats and patterns that the API does not know are checked by `schema`
 * alone. Throws an Error that names the field, its kind and the remedy where the strict form cannot express it.
 *
 * @internal
 */
export function strictForm(schema: z.ZodObject): JsonSchema {
  const made = known.get(schema);
  if (made) return made;
  const json = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, path }) => {
      const { type } = zodSchema._zod.def;
      const remedy = refusedKinds[type];
      // An open object is refused as such.
      if (remedy && path.at(-1) !== 'additionalProperties') refuse(fieldAt(path), `is a z.${type}()`, remedy);
    },
  });
  const form = strict(json as JsonSchema, '');
  delete form.$schema;
  known.set(schema, form);
  return form;
}

/**
 * Parses an answer in the strict form: a null in the place of a field that may be absent counts as absent.
 *
 * @internal
 */
export function parseForm<S extends z.ZodObject>(schema: S, value: unknown): z.ZodSafeParseResult<z.output<S>> {
  const first = schema.safeParse(value);
  if (first.success) return first;
  const copy = structuredClone(value);
  const taken = first.error.issues.flatMap((issue) => pathsOf(issue)).filter((path) => dropNull(copy, path));
  if (taken.length === 0) return first;
  const second = schema.safeParse(copy);
  const places = new Set(taken.map((path) => path.join('\n')));
  const isRequired = second.error?.issues.some((issue) => pathsOf(issue).some((path) => places.has(path.join('\n'))));
  return isRequired ? first : second;
}

function strict(node: JsonSchema, field: string): JsonSchema {
  const { oneOf, ...given } = node;
  const form: JsonSchema = oneOf === undefined ? given : { ...given, anyOf: oneOf };
  const refused = refusedWords.find((word) => word in form);
  if (refused)
    refuse(field, `needs ${JSON.stringify(refused)}`, 'write it as one z.object(), or as a z.union() of them');
  for (const word of leftToZod) if (!saysIt(word, form[word])) delete form[word];
  if (Array.isArray(form.anyOf)) form.anyOf = form.anyOf.map((branch: JsonSchema) => strict(branch, field));
  if (form.items) form.items = strict(form.items as JsonSchema, `${field}[]`);
  if (form.$defs) form.$defs = partsOf(form.$defs, (name) => name);
  return form.type === 'object' ? strictObject(form, field) : form;
}

function strictObject(form: JsonSchema, field: string): JsonSchema {
  const { additionalProperties: others, required = [], properties = {} } = form;
  if (others) refuse(field, 'takes fields beside those it names', 'write z.object() or z.strictObject()');
  const parts = partsOf(properties, (name) => (field ? `${field}.${name}` : name));
  const isRequired = new Set(required as string[]);
  const all = Object.entries(parts).map(([name, part]) => [name, isRequired.has(name) ? part : orNull(part)]);
  return {
    ...form,
    properties: Object.fromEntries(all),
    required: Object.keys(parts),
    additionalProperties: false,
  };
}

function partsOf(parts: unknown, fieldOf: (name: string) => string): Record<string, JsonSchema> {
  const entries = Object.entries(parts as Record<string, JsonSchema>);
  return Object.fromEntries(entries.map(([name, part]) => [name, strict(part, fieldOf(name))]));
}

function saysIt(word: string, value: unknown): boolean {
  if (word === 'format') return knownFormats.includes(String(value));
  return word === 'pattern' && typeof value === 'string' && !lookaround.test(value);
}

function orNull(part: JsonSchema): JsonSchema {
  const { anyOf, type } = part;
  const branches = Array.isArray(anyOf) ? (anyOf as JsonSchema[]) : [part];
  const takesNull = branches.some((branch) => branch.type === 'null' || (branch.type as string[])?.includes?.('null'));
  if (takesNull || type === 'null') return part;
  return Array.isArray(anyOf) ? { ...part, anyOf: [...anyOf, { type: 'null' }] } : { anyOf: [part, { type: 'null' }] };
}

function refuse(field: string, what: string, remedy: string): never {
  throw new Error(
    `The form of a model's answer: ${field ? `the field ${field}` : 'the whole of it'} ${what}, which models do not take ` +
      `(structured outputs, strict): ${remedy}.`,
  );
}

/** Returns a path within the JSON schema as one within the answer, such as `parts[].title`. */
function fieldAt(path: readonly PropertyKey[]): string {
  let field = '';
  for (let at = 0; at < path.length; at++) {
    const word = path[at];
    if (word === 'items') field += '[]';
    else if (word === 'properties') field += `${field ? '.' : ''}${String(path[++at])}`;
    else at++;
  }
  return field;
}

/** Returns the places that an issue speaks of: of a union those within its branches too. */
function pathsOf(issue: z.core.$ZodIssue, above: readonly PropertyKey[] = []): PropertyKey[][] {
  const path = [...above, ...issue.path];
  const inner = issue.code === 'invalid_union' ? issue.errors.flat() : [];
  return [path, ...inner.flatMap((part) => pathsOf(part, path))];
}

/** Removes the field at a path from its object if it is null. Returns false where it is not. */
function dropNull(value: unknown, path: readonly PropertyKey[]): boolean {
  const name = path.at(-1);
  const owner = path.slice(0, -1).reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], value);
  if (name === undefined || typeof owner !== 'object' || owner === null || Array.isArray(owner)) return false;
  const fields = owner as Record<PropertyKey, unknown>;
  return fields[name] === null && delete fields[name];
}
