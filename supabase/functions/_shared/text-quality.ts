const goodEnough = 0.6;
const longestWord = 40;
// The dots between an entry of a table of contents and its page, bullets and rules say nothing about the words.
const leaders = /[.…·•_]{3,}|(?<!\S)[.…·•*_\p{Pd}]+(?!\S)/gu;

/**
 * How far a text consists of words and numbers as people write them, from 0 to 1: the share of its characters, blanks
 * aside, that stand in such words. What a PDF with a broken font or a badly read image gives comes out low.
 */
export function textQuality(text: string): number {
  const pieces = text.normalize('NFC').replace(leaders, ' ').match(/\S+/gu) ?? [];
  let all = 0;
  let good = 0;
  for (const piece of pieces) {
    const length = [...piece].length;
    all += length;
    if (isNumber(piece) || isWord(piece)) good += length;
  }
  return all === 0 ? 0 : good / all;
}

/** Whether a text can be taken for what stands on the page. An empty one cannot. */
export function looksLikeText(text: string): boolean {
  return textQuality(text) >= goodEnough;
}

function isNumber(piece: string): boolean {
  return /^[\p{P}\p{Sc}]*\p{N}+([.,:/–-]\p{N}+)*[\p{P}%°]*$/u.test(piece);
}

function isWord(piece: string): boolean {
  const word = /^\p{P}*(\p{L}[\p{L}\p{M}]*(?:[\p{Pd}'’.&/\u00ad]\p{L}[\p{L}\p{M}]*)*)\p{P}*$/u.exec(piece)?.[1];
  if (!word) return false;
  if (!/\p{Script=Latin}/u.test(word)) return true;
  const letters = word.normalize('NFD').replace(/\P{L}/gu, '');
  if (letters.length > longestWord) return false;
  // A font's own order of letters often shows as words nobody could speak. Abbreviations are short or in capitals.
  return letters.length <= 3 || /[aeiouyæœøı]/i.test(letters) || /^[A-Z]{2,6}$/.test(letters);
}
