import { numbersOf } from './titles.ts';

const deepest = 6;
// Lines of one level begin within this distance of one another, in points.
const sameIndent = 3;

/**
 * The level of each entry of a table of contents, 1 for the highest: by the numbers that titles begin with, and by how far
 * the line is set in, which tells the level of a title without a number.
 */
export function levelsOf(entries: readonly { title: string; x: number | null }[]): number[] {
  const depths = entries.map(({ title }) => numbersOf(title)?.length ?? null);
  const indents = indentsOf(entries.map(({ x }) => x));
  const usual = new Map<number, number>();
  const seen = new Map<string, number>();
  entries.forEach((_, at) => {
    const [indent, depth] = [indents[at], depths[at]];
    if (indent == null || depth == null) return;
    const key = `${indent} ${depth}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    const best = usual.get(indent);
    if (best === undefined || (seen.get(key) ?? 0) > (seen.get(`${indent} ${best}`) ?? 0)) usual.set(indent, depth);
  });
  const levels = entries.map((_, at) => {
    const indent = indents[at] ?? null;
    return depths[at] ?? (indent === null ? 1 : (usual.get(indent) ?? (usual.size > 0 ? 1 : indent + 1)));
  });
  // If all entries are of deeper levels, the highest of these counts as the first.
  const top = levels.reduce((least, level) => Math.min(least, level), deepest);
  return levels.map((level) => Math.min(level - top + 1, deepest));
}

/** Ranks the indents of the lines from 0, the one furthest to the left; null for a line whose place is unknown. */
function indentsOf(places: readonly (number | null)[]): (number | null)[] {
  const sorted = [...new Set(places.filter((x) => x !== null))].sort((a, b) => a - b);
  const indent = new Map<number, number>();
  let count = -1;
  sorted.forEach((x, at) => {
    if (at === 0 || x - (sorted[at - 1] ?? x) > sameIndent) count++;
    indent.set(x, count);
  });
  return places.map((x) => (x === null ? null : (indent.get(x) ?? null)));
}
