/** The escapes of a JSON text, each matched whole: the `u` after an escaped backslash begins none. */
const escapes = /\\(u(?:0000|d[89a-f][0-9a-f]{2})|[\s\S])/g;
/** How many levels are kept of what JSON refuses; fewer where the stack has no room for the first. */
const deepest = [1_500, 100];

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
    return [deeper(500, () => JSON.stringify(value)), true];
  } catch {
    const [most = 0, least = 0] = deepest;
    try {
      return [JSON.stringify(plain(value, [], most)), false];
    } catch {
      return [JSON.stringify(plain(value, [], least)), false];
    }
  }
}

/** Does its work so many frames further down, so that the client, which writes the same JSON with less of the stack left, can too. */
function deeper<Done>(frames: number, work: () => Done): Done {
  return frames > 0 ? deeper(frames - 1, work) : work();
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
