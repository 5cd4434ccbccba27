import type { z } from 'zod';
import { excerpt, PermanentError, RetriableError, type StageError, storableText } from '../errors.ts';

const DEEPEST = 1_000;

/**
 * Parses a stage's output by its schema and checks that JSON and Postgres can store it within `limitBytes`.
 * Throws `invalid_output` with the path of the first fault, or `result_too_large` with the remedy.
 * An output that JSON cannot hold, such as undefined, is stored as null.
 */
export function validateResult<S extends z.ZodType>(
  schema: S,
  output: unknown,
  limitBytes: number,
): z.output<S> | null {
  const parsed = parse(schema, output);
  if (!parsed.success) throw invalidOutput(parsed.error, output, { retriable: false });
  const fault = storageFault(parsed.data, 'output');
  if (fault) throw new PermanentError('invalid_output', fault);
  const json: string | undefined = JSON.stringify(parsed.data);
  if (json === undefined) return null;
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > limitBytes) {
    throw new PermanentError(
      'result_too_large',
      `The result has ${bytes} bytes and the stage allows ${limitBytes}: ` +
        'put it into Storage and return its location, or raise result_limit_bytes.',
    );
  }
  return parsed.data;
}

/** Parses an output. A schema that refers to itself overflows the stack where the output contains itself or is too deep. */
function parse<S extends z.ZodType>(schema: S, output: unknown) {
  try {
    return schema.safeParse(output);
  } catch (error) {
    const fault = error instanceof RangeError ? storageFault(output, 'output') : null;
    throw fault ? new PermanentError('invalid_output', fault) : error;
  }
}

/**
 * Returns an error that says where a value departs from its schema, with the found and the expected value.
 * `retriable`: for a source that may answer differently the next time, such as a model.
 */
export function invalidOutput(error: z.ZodError, value: unknown, options: { retriable: boolean }): StageError {
  const message = `The output is not as the stage declares it: ${describeFault(error, value, 'output')}`;
  return options.retriable
    ? new RetriableError('invalid_output', message)
    : new PermanentError('invalid_output', message);
}

/** Returns the first fault of a failed parse as `path: what is wrong (found: kind of value)`. */
export function describeFault(error: z.ZodError, value: unknown, root: string): string {
  const issue = error.issues[0];
  const path = issue?.path ?? [];
  const more = error.issues.length > 1 ? `, and ${error.issues.length - 1} more` : '';
  return `${pathText(path, root)}: ${issue?.message} (found: ${kindOf(valueAt(value, path))})${more}`;
}

/** Returns the path of a part that JSON or Postgres cannot store, with the remedy; null when the whole value can be stored. */
export function storageFault(value: unknown, path: string, above: unknown[] = []): string | null {
  if (typeof value === 'string') return storableText(value) === value ? null : textFault(path);
  if (typeof value === 'bigint') return `${path} is a BigInt, which JSON cannot hold: return a number, or its digits.`;
  if (typeof value === 'number' && !Number.isFinite(value))
    return `${path} is ${value}, which JSON cannot hold: return null instead, or leave it out.`;
  if (value === null || typeof value !== 'object') return null;
  if (above.includes(value)) return `${path} holds itself, which JSON cannot do: return a copy without the circle.`;
  if (above.length >= DEEPEST) return `${excerpt(path, 60)}… has more than ${DEEPEST} levels: return it flatter.`;
  above.push(value);
  const { toJSON } = value as { toJSON?: unknown };
  const fault =
    typeof toJSON === 'function' ? storageFault(toJSON.call(value, ''), path, above) : innerFault(value, path, above);
  above.pop();
  return fault;
}

function innerFault(value: object, path: string, above: unknown[]): string | null {
  for (const [key, inner] of Object.entries(value)) {
    if (storableText(key) !== key) return textFault(`A key of ${path}`);
    const fault = storageFault(inner, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, above);
    if (fault) return fault;
  }
  return null;
}

const textFault = (where: string) =>
  `${where} holds a NUL character or half of a surrogate pair, which Postgres cannot store: remove it, for example ` +
  'with storableText().';

function pathText(path: readonly PropertyKey[], root: string): string {
  return path.reduce<string>((text, key) => text + (typeof key === 'number' ? `[${key}]` : `.${String(key)}`), root);
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key], value);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (typeof value === 'string') return `string of ${value.length} character${value.length === 1 ? '' : 's'}`;
  return typeof value;
}
