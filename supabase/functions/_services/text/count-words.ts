/** A page of many words is cut before it is counted: so many UTF-16 units hold more than anybody asks for. */
const unitsPerWord = 40;

/**
 * Whether a text has at most so many words, in any script: Chinese, Japanese and Thai write no blanks between them.
 *
 * @example
 * ```ts
 * hasFewWords('这个职位已经关闭。', 250); // true
 * ```
 */
export function hasFewWords(text: string, most: number): boolean {
  const words = new Intl.Segmenter(undefined, { granularity: 'word' });
  let count = 0;
  for (const { isWordLike } of words.segment(text.slice(0, most * unitsPerWord))) {
    if (isWordLike && ++count > most) return false;
  }
  return text.length <= most * unitsPerWord;
}
