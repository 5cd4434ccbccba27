import { Unfillable } from './json-schema.ts';
import type { Material } from './material.ts';
import { type Query, wordsOf } from './relevance.ts';

const negation = /\b(no|not|never|none|nobody|nothing|without|cannot|false)\b|n't\b/i;

/** Picks the value that the material mentions most, the first of equals, and one not yet `taken` (as JSON) if it can. */
export function pickValue(values: unknown[], taken: string[], material: Material, path: string): unknown {
  if (values.length === 0) throw new Unfillable(path, 'its "enum" lists no value');
  const free = values.filter((value) => !taken.includes(JSON.stringify(value)));
  const ranked = (free.length > 0 ? free : values).map((value, index) => ({
    value,
    index,
    rank: mentions(value, material),
  }));
  return ranked.sort((a, b) => b.rank - a.rank || a.index - b.index)[0]?.value;
}

/** Returns whether the material speaks of the named thing, and does not deny it. */
export function saysYes(query: Query, material: Material): boolean {
  const { relevance, units } = material;
  const best = material.rank(query).find((index) => relevance.overlap(index, { ...query, description: [] }) > 0);
  return best !== undefined && !negation.test(units[best]?.text ?? '');
}

/** Returns whether the material mentions the value at all. */
export function isMentioned(value: unknown, material: Material): boolean {
  return mentions(value, material) > 0;
}

function mentions(value: unknown, material: Material): number {
  if (value === null) return -1;
  const words = wordsOf(String(value));
  return words.reduce((sum, word) => sum + material.relevance.frequency(word), 0) / (words.length || 1);
}
