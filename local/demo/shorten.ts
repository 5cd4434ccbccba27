const longest = 30;

/** Returns a file's name as it fits into a table: the middle of a long one is left out, for its end tells its type. */
export function shorten(name: string): string {
  if (name.length <= longest) return name;
  return `${name.slice(0, longest - 10)}…${name.slice(-9)}`;
}
