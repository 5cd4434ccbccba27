import type { OutcomeItem } from '../engine/engine-contract.ts';

// In characters, since that is what JSON.stringify tells: at most three times as many bytes.
const MOST_CHARACTERS = 4_000_000;

/**
 * Divides outcomes into portions that the database records well within its time for a call: a few megabytes of JSON at most,
 * or a single outcome. There is always at least one portion.
 */
export function portionsOf(items: OutcomeItem[]): OutcomeItem[][] {
  const portions: OutcomeItem[][] = [[]];
  let length = 0;
  for (const item of items) {
    const more = lengthOf(item);
    if (length > 0 && length + more > MOST_CHARACTERS) {
      portions.push([]);
      length = 0;
    }
    portions.at(-1)?.push(item);
    length += more;
  }
  return portions;
}

/**
 * Returns the length of an outcome's JSON; 0 where JSON refuses an odd field: results were checked, so the rest is
 * small.
 */
function lengthOf(item: OutcomeItem): number {
  try {
    return JSON.stringify(item).length;
  } catch {
    return 0;
  }
}
