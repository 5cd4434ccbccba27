import { stripVTControlCharacters } from 'node:util';
import width from 'fast-string-truncated-width';

/**
 * Breaks a line that is wider than the terminal at its blanks, outside of quoted texts where there are such, and indents what
 * follows by two more. Colours go on over the break.
 */
export function fitLine(line: string, columns: number): string[] {
  if (columnsOf(line) <= columns) return [line];
  const indent = ' '.repeat((/^\s*/.exec(stripVTControlCharacters(line))?.[0].length ?? 0) + 2);
  const lines: string[] = [];
  let rest = line;
  while (columnsOf(rest) > columns) {
    const end = breakBefore(rest, columns, lines.length === 0 ? indent.length - 2 : indent.length);
    if (end === null) break;
    lines.push(rest.slice(0, end).trimEnd());
    rest = indent + rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

/** Finds the last blank that leaves a line narrow enough, else the first blank behind. Returns null without one. */
function breakBefore(line: string, columns: number, indented: number): number | null {
  const blanks = [...line.matchAll(/ +/g)]
    .map(({ index }) => index)
    .filter((at) => columnsOf(line.slice(0, at)) > indented);
  const fitting = blanks.filter((at) => columnsOf(line.slice(0, at)) <= columns);
  const unquoted = fitting.filter((at) => line.slice(0, at).split("'").length % 2 === 1);
  return unquoted.at(-1) ?? fitting.at(-1) ?? blanks[0] ?? null;
}

function columnsOf(line: string): number {
  return width(stripVTControlCharacters(line)).width;
}
