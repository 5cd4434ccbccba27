import type { DecodedText } from './decode-text.ts';

/**
 * Doubts about a text's letters, in sentences for the readers of its row; empty where there are none.
 *
 * @example
 * ```ts
 * charsetDoubts({ charset: 'koi8-r', guessed: true, lost: 0 }); // ['Its charset koi8-r was guessed.']
 * ```
 */
export function charsetDoubts({ charset, guessed, lost }: Omit<DecodedText, 'text'>): string[] {
  return [
    // Valid UTF-8 of some length is nothing else.
    ...(guessed && charset !== 'utf-8' ? [`Its charset ${charset} was guessed.`] : []),
    ...(lost > 0 ? [`It has ${lost} characters that cannot be read in its charset ${charset}.`] : []),
  ];
}
