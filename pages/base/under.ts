/**
 * Returns a record's own value under a name that a stranger may choose: `constructor` finds nothing that objects
 * inherit.
 */
export const under = <Value>(record: Record<string, Value>, name: string): Value | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;
