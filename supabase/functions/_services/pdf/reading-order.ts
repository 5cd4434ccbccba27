import bidiFactory from 'bidi-js';

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const leftToRight = /\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic}/u;

let bidi: ReturnType<typeof bidiFactory> | undefined;

/** Whether letters of Hebrew, Arabic or their kin stand in a text. */
export function hasRightToLeft(text: string): boolean {
  return rightToLeft.test(text);
}

/**
 * A line as it is read, from one as it is painted, from left to right. Unicode's algorithm turns one into the other either way:
 * words of Hebrew and Arabic are turned round, and Latin words and numbers among them are not.
 */
export function readingOrder(painted: string): string {
  bidi ??= bidiFactory();
  const levels = bidi.getEmbeddingLevels(painted, mainlyRightToLeft(painted) ? 'rtl' : 'ltr');
  return bidi
    .getReorderedIndices(painted, levels)
    .map((index) => painted[index])
    .join('');
}

function mainlyRightToLeft(text: string): boolean {
  let surplus = 0;
  for (const letter of text) surplus += rightToLeft.test(letter) ? 1 : leftToRight.test(letter) ? -1 : 0;
  return surplus >= 0;
}
