// Blanks and comments are passed over; each name, text and sign is a token of its own.
const tokens = /\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\])*"|[^\s?%$.[\]{}()|&!=<>@#,*:\-+/"]+|\S/g;

/**
 * Returns the paths that a jsonpath condition reads.
 *
 * `paths`: the names that follow each `$`.
 * `inBrackets`: the first quoted name in brackets; undefined where there is none.
 */
export function pathsOf(condition: string): { paths: string[][]; inBrackets: string | undefined } {
  const found = (condition.match(tokens) ?? []).filter((token) => !token.startsWith('/*'));
  const paths = found.flatMap((token, place) => (token === '$' ? [namesFrom(found, place + 1)] : []));
  const inBrackets = found.find((token, place) => token.startsWith('"') && found[place - 1] === '[');
  return { paths, inBrackets };
}

/** Returns the names after dots from this token on. Stops at a method such as `.size()`. */
function namesFrom(found: string[], position: number): string[] {
  const name = found[position + 1];
  if (found[position] !== '.' || !name || !/^[^*]/.test(name) || found[position + 2] === '(') return [];
  return [unquoted(name), ...namesFrom(found, position + 2)];
}

/** Returns a name as Postgres reads it; it may spell a letter as in JSON, quoted or not. */
function unquoted(name: string): string {
  try {
    return JSON.parse(name.startsWith('"') ? name : `"${name}"`);
  } catch {
    return name;
  }
}
