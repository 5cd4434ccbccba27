import { normalForm } from './normal-form.ts';

const goodEnough = 0.7;
const longestWord = 40;
// European languages have 35 vowels and more in a hundred letters.
const leastVowels = 0.28;
const lettersToCount = 20;
// The dots between an entry of a table of contents and its page, bullets and rules say nothing about the words.
const leaders = /[.…·•_]{3,}|(?<!\S)[.…·•*_\p{Pd}]+(?!\S)/gu;
const vowels = /[aeiouyæœøı]/gi;

/**
 * How far a text consists of words and numbers as people write them, from 0 to 1: the share of its characters, blanks
 * aside, that stand in such words. What a PDF with a broken font or a badly read image gives comes out low.
 */
export function textQuality(text: string): number {
  const pieces = normalForm(text, 'NFC').replace(leaders, ' ').match(/\S+/gu) ?? [];
  let all = 0;
  let good = 0;
  for (const piece of pieces) {
    const length = [...piece].length;
    all += length;
    if (isNumber(piece) || isWord(piece)) good += length;
  }
  return all === 0 ? 0 : (good / all) * speakable(text);
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
  const letters = latinLetters(word);
  // Abbreviations are short.
  return letters.length <= 3 || (letters.length <= longestWord && letters.search(vowels) >= 0);
}

/** 1, or less where vowels are too few: a font with an order of its own often shows one letter for another. */
function speakable(text: string): number {
  const letters = latinLetters(text);
  if (letters.length < lettersToCount) return 1;
  return Math.min(1, (letters.match(vowels) ?? []).length / letters.length / leastVowels);
}

function latinLetters(text: string): string {
  return normalForm(text, 'NFD').replace(/\P{Script=Latin}/gu, '');
}
