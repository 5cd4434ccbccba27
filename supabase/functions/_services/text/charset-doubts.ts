import type { DecodedText } from './decode-text.ts';

/**
 * What is uncertain about a text's letters, in sentences for whoever reads its row; empty where nothing is.
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
