import { createHash } from 'node:crypto';
import { wordsOf } from './relevance.ts';

/** How long a vector is unless a request says otherwise: in a shorter one more words fall on one place. */
export const usualDimensions = 3072;

/**
 * A text as a vector of length 1: each word adds to two places that its hash names, more often said ones by the logarithm of how
 * often. Texts that share words are similar, whatever they are about, and the same text always has the same vector.
 */
export function embedText(text: string, dimensions: number): number[] {
  const counts = new Map<string, number>();
  for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  // A text without words, such as a row of dashes, is similar to itself alone.
  if (counts.size === 0) counts.set(text.trim(), 1);
  const vector = new Array<number>(dimensions).fill(0);
  for (const [word, count] of counts) {
    const hash = createHash('sha256').update(word).digest();
    for (const at of [0, 8]) {
      const place = hash.readUInt32LE(at) % dimensions;
      vector[place] = (vector[place] ?? 0) + (hash.readInt8(at + 4) < 0 ? -1 : 1) * (1 + Math.log(count));
    }
  }
  const length = Math.hypot(...vector);
  // The two places of a lone word may cancel each other out.
  if (length === 0) return vector.fill(1 / Math.sqrt(dimensions));
  return vector.map((value) => value / length);
}
