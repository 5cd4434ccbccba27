/** The keywords of JSON Schema that the filler reads; any other keyword is left to the validator. */
export interface JsonSchema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  additionalProperties?: Schema;
  propertyNames?: Schema;
  required?: string[];
  minProperties?: number;
  maxProperties?: number;
  items?: Schema;
  prefixItems?: Schema[];
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
}

export type Schema = boolean | JsonSchema;

/** A schema for which no value could be made: where, and why. */
export class Unfillable extends Error {
  readonly path: string;

  constructor(path: string, reason: string) {
    super(`${path === '' ? 'the schema' : path}: ${reason}`);
    this.name = 'Unfillable';
    this.path = path;
  }
}

/** Finds the schema that a reference such as "#/$defs/item" points to. Throws Unfillable when there is none. */
export function resolveRef(root: Schema, ref: string, path: string): Schema {
  if (!ref.startsWith('#')) throw new Unfillable(path, `the reference "${ref}" leads out of the schema`);
  const steps = decodeURIComponent(ref.slice(1)).split('/').slice(1);
  let found: unknown = root;
  for (const step of steps) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    found = typeof found === 'object' && found !== null ? (found as Record<string, unknown>)[key] : undefined;
  }
  if (typeof found !== 'object' && typeof found !== 'boolean') {
    throw new Unfillable(path, `the reference "${ref}" points to nothing`);
  }
  return found as Schema;
}

/** One schema that asks for all that two ask for, as far as their keywords can be joined. */
export function mergeSchemas(one: JsonSchema, other: JsonSchema): JsonSchema {
  const merged: JsonSchema = { ...one, ...other };
  const both = <K extends keyof JsonSchema>(key: K) => one[key] !== undefined && other[key] !== undefined;
  if (both('properties')) merged.properties = { ...one.properties, ...other.properties };
  if (both('required')) merged.required = [...new Set([...(one.required ?? []), ...(other.required ?? [])])];
  if (both('description')) merged.description = `${one.description} ${other.description}`;
  if (both('enum')) merged.enum = one.enum?.filter((value) => other.enum?.includes(value)) ?? [];
  if (both('allOf')) merged.allOf = [...(one.allOf ?? []), ...(other.allOf ?? [])];
  for (const key of ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'] as const) {
    if (both(key)) merged[key] = Math.max(one[key] ?? 0, other[key] ?? 0);
  }
  for (const key of ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'] as const) {
    if (both(key)) merged[key] = Math.min(one[key] ?? 0, other[key] ?? 0);
  }
  return merged;
}

/** Returns the types a schema allows, null last; read from its other keywords where it names none. */
export function typesOf(schema: JsonSchema): string[] {
  if (schema.type !== undefined) {
    return [schema.type].flat().sort((a, b) => Number(a === 'null') - Number(b === 'null'));
  }
  if (schema.properties || schema.required || schema.additionalProperties || schema.patternProperties)
    return ['object'];
  if (schema.items || schema.prefixItems || schema.minItems !== undefined) return ['array'];
  const numeric = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'] as const;
  return [numeric.some((key) => schema[key] !== undefined) ? 'number' : 'string'];
}
