/** Returns an option's name in the database's spelling. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Options whose keys are the user's own words: error codes, values, names of endings. */
const named = ['byCode', 'values', 'answers', 'ends', 'failed'];

/**
 * Renames the options to the database's spelling. The keys of `byCode`, `values`, `answers`, `ends` and `failed` are words of
 * the user's, and those of a decision's `schema` and of an answer's `decision` name what people send: they stay as written.
 */
export function snakeKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeKeys);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => {
    if (key === 'schema') return [key, inner];
    return [snakeCase(key), named.includes(key) && isObject(inner) ? namedKeys(key, inner) : snakeKeys(inner)];
  });
  return Object.fromEntries(entries);
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function namedKeys(option: string, value: object): object {
  const entries = Object.entries(value).map(([key, inner]) => {
    if (option === 'values') return [key, inner];
    if (option === 'answers') return [key, { ...(inner as object) }];
    return [key, snakeKeys(inner)];
  });
  return Object.fromEntries(entries);
}
