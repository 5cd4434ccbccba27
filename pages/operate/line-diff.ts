// Two texts line by line, side by side.
import { diffLines } from 'diff';

/** A row of the comparison: the older line, the newer one, or both. `alike` counts unchanged lines that are left out. */
export interface Row {
  was?: string;
  is?: string;
  alike?: number;
}

/** Unchanged lines around a change; more of them are left out. */
const context = 3;
/** Beyond so many milliseconds all lines count as changed. */
const mostMs = 500;

const linesOf = (text: string) => text.replace(/\n$/, '').split('\n');

/** Shortens unchanged lines by their middle. `isFirst`, `isLast`: whether no change comes before or after them. */
function shortened(lines: string[], isFirst: boolean, isLast: boolean): Row[] {
  const [before, after] = [isFirst ? 0 : context, isLast ? 0 : context];
  const both = (part: string[]) => part.map((line) => ({ was: line, is: line }));
  const left = lines.length - before - after;
  if (left < 2) return both(lines);
  return [...both(lines.slice(0, before)), { alike: left }, ...both(lines.slice(before + left))];
}

/** Returns the rows of a comparison: changed lines stand beside each other in their order, unchanged ones around them. */
export function sideBySide(older: string, newer: string): Row[] {
  const parts = diffLines(`${older}\n`, `${newer}\n`, { timeout: mostMs }) ?? [
    { value: older, removed: true, added: false },
    { value: newer, removed: false, added: true },
  ];
  const rows: Row[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    const { value = '', removed, added } = parts[at] ?? {};
    if (!removed && !added) {
      rows.push(...shortened(linesOf(value), at === 0, at === parts.length - 1));
      continue;
    }
    const next = parts[at + 1];
    const gone = removed ? linesOf(value) : [];
    const come = added ? linesOf(value) : next?.added ? linesOf(next.value) : [];
    if (removed && next?.added) at += 1;
    for (let line = 0; line < Math.max(gone.length, come.length); line += 1) {
      const [was, is] = [gone[line], come[line]];
      rows.push({ ...(was !== undefined && { was }), ...(is !== undefined && { is }) });
    }
  }
  return rows;
}
