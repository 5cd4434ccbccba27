/** What a record has under a name that a stranger has chosen, such as `constructor`, which every object inherits. */
export const under = <Value>(record: Record<string, Value>, name: string): Value | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;
