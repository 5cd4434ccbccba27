/** An option's name in the database's spelling. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Renames the options to the database's spelling. The keys of `byCode` are error codes and those of a decision's `schema`
 * name what people send: they stay as written.
 */
export function snakeKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeKeys);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => {
    if (key === 'schema') return [key, inner];
    if (key !== 'byCode' || inner === null || typeof inner !== 'object') return [snakeCase(key), snakeKeys(inner)];
    const policies = Object.entries(inner).map(([code, policy]) => [code, snakeKeys(policy)]);
    return [snakeCase(key), Object.fromEntries(policies)];
  });
  return Object.fromEntries(entries);
}
