/** The escapes of a JSON text, each matched whole: the `u` after an escaped backslash begins none. */
const escapes = /\\(u(?:0000|d[89a-f][0-9a-f]{2})|[\s\S])/g;
/**
 * How many levels of lists and objects a call may have; a result has at most 1,000. The database and the client refuse a deeper call
 * as a whole, each at a depth of its own that varies with the stack it has left.
 */
const deepest = 1_500;

/**
 * The arguments of a call as JSON and Postgres can hold them: NUL and halves of surrogate pairs become U+FFFD in every string and
 * key, a BigInt its digits, and what JSON refuses, such as a part of itself, null. Sound arguments are returned as they are.
 * A result has been checked by then; this keeps an odd field beside it from failing the call.
 */
export function storable<A>(args: A): A {
  const [json, isSound] = jsonOf(args);
  // JSON escapes what Postgres cannot store, so that nearly all need no second look.
  if (isSound && !json.includes('\\u')) return args;
  const clean = json.replaceAll(escapes, (whole, of: string) => (of.length > 1 ? '\\ufffd' : whole));
  return isSound && clean === json ? args : JSON.parse(clean);
}

function jsonOf(value: unknown): [json: string, isSound: boolean] {
  try {
    const json = JSON.stringify(value);
    if (!isDeeper(json, deepest)) return [json, true];
  } catch {
    // The value is a part of itself, holds a BigInt, or has more levels than the stack has room for.
  }
  try {
    return [JSON.stringify(plain(value, [], deepest)), false];
  } catch {
    return [JSON.stringify(plain(value, [], 100)), false];
  }
}

/** Returns whether a JSON text has lists and objects within one another at more than so many levels. */
function isDeeper(json: string, levels: number): boolean {
  // Each level takes two characters.
  if (json.length <= 2 * levels) return false;
  let level = 0;
  for (let at = 0; at < json.length; at++) {
    const sign = json[at];
    if (sign === '"') at = endOfText(json, at);
    else if (sign === '[' || sign === '{') level++;
    else if (sign === ']' || sign === '}') level--;
    if (level > levels) return true;
  }
  return false;
}

/** Returns where the text that begins at this quote ends: at the next quote with an even number of backslashes before it. */
function endOfText(json: string, begin: number): number {
  for (let end = json.indexOf('"', begin + 1); ; end = json.indexOf('"', end + 1)) {
    let before = end;
    while (json[before - 1] === '\\') before--;
    if ((end - before) % 2 === 0) return end;
  }
}

function plain(value: unknown, above: unknown[], levels: number): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (above.length >= levels || above.includes(value)) return null;
  const inner = [...above, value];
  try {
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === 'function') return plain(toJSON.call(value, ''), inner, levels);
    if (Array.isArray(value)) return value.map((one) => plain(one, inner, levels));
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one, inner, levels)]));
  } catch {
    return null;
  }
}
