import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { ApiError } from './api-error.ts';
import { SchemaFiller } from './fill-schema.ts';
import { type JsonSchema, Unfillable } from './json-schema.ts';
import type { Material } from './material.ts';

const keptValidators = 200;
const validators = new Map<string, ValidateFunction>();
let ajv = newAjv();

/**
 * Fills a JSON schema from the material; what comes out is valid against it.
 * `param` is the field of the request that holds the schema. Throws ApiError 400 with the path of what cannot be filled.
 */
export function answerSchema(schema: JsonSchema, material: Material, param: string): unknown {
  const validate = validatorOf(schema, param);
  try {
    const value = new SchemaFiller(schema, material).fill();
    if (validate(value)) return value;
  } catch (error) {
    if (!(error instanceof Unfillable)) throw error;
    throw new ApiError(400, `This schema cannot be filled. ${error.message}.`, param, 'unfillable_schema');
  }
  const fault = validate.errors?.[0];
  const path = fault?.instancePath.slice(1).replaceAll('/', '.') || 'the schema';
  const message = `This schema cannot be filled. ${path}: ${fault?.message} (${fault?.schemaPath}).`;
  throw new ApiError(400, message, param, 'unfillable_schema');
}

/**
 * The first draft that is a valid answer already: who is shown one can hand it back. None for a schema so loose that other
 * objects would fit as well. Throws ApiError 400 when it is no schema.
 */
export function draftThatFits(schema: JsonSchema, drafts: object[], param: string): object | undefined {
  if (drafts.length === 0 || schema.additionalProperties !== false || !schema.required?.length) return undefined;
  const validate = validatorOf(schema, param);
  return drafts.find((draft) => validate(draft));
}

const refusedWords = ['allOf', 'default', 'not', 'oneOf', 'patternProperties', 'prefixItems', 'propertyNames'];
const knownFormats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'];

/** Refuses what OpenAI's strict mode refuses: open objects, optional properties and words it does not know, by their path. */
export function checkStrict(schema: unknown, param: string, path = ''): void {
  if (typeof schema !== 'object' || schema === null) return;
  const { properties, required = [], additionalProperties, type } = schema as JsonSchema;
  const where = path === '' ? 'the schema itself' : path;
  const refuse = (reason: string) => {
    throw new ApiError(400, `Invalid strict schema. ${where}: ${reason}.`, param, 'invalid_json_schema');
  };
  if (path === '' && type !== 'object') refuse('the root must have the type "object"');
  const word = refusedWords.find((one) => one in schema);
  if (word) refuse(`"${word}" is not permitted`);
  const { format, pattern } = schema as { format?: string; pattern?: string };
  if (format && !knownFormats.includes(format)) refuse(`"${format}" is not a valid format`);
  if (pattern && /\(\?(?:[=!]|<[=!])/.test(pattern)) refuse('"pattern" may not look around');
  if (Object.keys(schema).length === 0) refuse('the schema must have a "type" key');
  if (type === 'object' || properties) {
    if (additionalProperties !== false) refuse('"additionalProperties" must be given as false');
    const missing = Object.keys(properties ?? {}).find((key) => !required.includes(key));
    if (missing !== undefined) refuse(`"required" must list every property, but "${missing}" is missing`);
  }
  for (const [key, part] of partsOf(schema as JsonSchema))
    checkStrict(part, param, path === '' ? key : `${path}.${key}`);
}

function partsOf(schema: JsonSchema & { $defs?: Record<string, unknown> }): [string, unknown][] {
  const branches = (schema.anyOf ?? []).map((branch, index): [string, unknown] => [`anyOf[${index}]`, branch]);
  const items: [string, unknown][] = schema.items === undefined ? [] : [['items', schema.items]];
  return [...Object.entries(schema.properties ?? {}), ...Object.entries(schema.$defs ?? {}), ...items, ...branches];
}

function validatorOf(schema: JsonSchema, param: string): ValidateFunction {
  const text = JSON.stringify(schema);
  const known = validators.get(text);
  if (known) return known;
  // The library never forgets a schema, so this makes it anew from time to time.
  if (validators.size >= keptValidators) {
    validators.clear();
    ajv = newAjv();
  }
  try {
    const { $schema: _, $id: __, ...rest } = schema as JsonSchema & { $schema?: string; $id?: string };
    const validate = ajv.compile(rest);
    validators.set(text, validate);
    return validate;
  } catch (error) {
    throw new ApiError(400, `This is no JSON schema: ${(error as Error).message}.`, param, 'invalid_json_schema');
  }
}

function newAjv(): Ajv2020 {
  const made = new Ajv2020({ strict: false, logger: false });
  addFormats(made);
  return made;
}
