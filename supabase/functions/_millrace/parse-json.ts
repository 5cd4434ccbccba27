/**
 * The value that a JSON text stands for, or the text itself where it is none. Never throws.
 *
 * @example
 * ```ts
 * const answer = z.object({ rate: z.number() }).safeParse(parseJson('{"rate": 4.2}'));
 * ```
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
