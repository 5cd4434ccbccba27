import { normalForm } from './normal-form.ts';

const goodEnough = 0.7;
const longestWord = 40;
// European languages have 35 vowels and more in a hundred letters.
const leastVowels = 0.28;
const lettersToCount = 20;
// Of the characters of code.
const leastLetters = 0.4;
const shortestWord = 3;
// The commonest pairs of letters in English, French, German, Italian and Spanish make 55 of a hundred, in an alphabet in disorder 20.
const usualPairs = new Set(
  (
    'th he in er an re on at en nd ti es or te ed is it al ar st to nt ng se ha as ou io le ve co me de ' +
    'hi ri ro ic ne ea ra ce li ch ll be ma si om ur el la ie et ei un ge os ad ta di'
  ).split(' '),
);
const leastUsual = 0.4;
const disorder = 0.15;
const pairsToCount = 80;
// Some programs write this for a glyph without a letter.
const cid = /\(cid:\d+\)/g;
// The dots between an entry of a table of contents and its page, bullets and rules say nothing about the words.
const leaders = /[.…·•_]{3,}|(?<!\S)[.…·•*_\p{Pd}]+(?!\S)/gu;
// Within words of Persian and Sinhala stand joiners; Tibetan has a point between syllables, and none between words.
const joiners = /[\u200b-\u200d\u2060]|(?<=\p{Script=Tibetan})\u0f0b/gu;
const vowels = /[aeiouyæœøı]/gi;

/**
 * How far a text consists of words and numbers as people write them, from 0 to 1: the share of its characters, blanks
 * aside, in such words. The text of a PDF with a broken font or of a badly read image scores low.
 */
export function textQuality(text: string): number {
  const pieces = normalForm(text, 'NFC').replace(joiners, '').replace(leaders, ' ').match(/\S+/gu) ?? [];
  let all = 0;
  let good = 0;
  for (const piece of pieces) {
    const length = [...piece].length;
    all += length;
    if (isNumber(piece) || isWord(piece)) good += length;
  }
  return all === 0 ? 0 : Math.max(good / all, wordsOfCode(pieces, all)) * speakable(text);
}

/** Whether a text can be taken for what stands on the page. An empty one cannot. */
export function looksLikeText(text: string): boolean {
  return textQuality(text) >= goodEnough;
}

/**
 * The share of letters that stand in words between the signs of code and formulas, such as `draw(unitbox,red);`. 0 where there are
 * few letters: a broken font shows signs for letters, too, which leaves no words.
 */
function wordsOfCode(pieces: readonly string[], all: number): number {
  const text = pieces.join(' ').replace(cid, ' ');
  const words = text.match(/\p{L}[\p{L}\p{M}]*/gu) ?? [];
  const count = (some: readonly string[]) => some.reduce((sum, word) => sum + [...word].length, 0);
  const letters = count(words);
  if (letters < lettersToCount || letters < all * leastLetters || shareOfUsual(words).share < leastUsual) return 0;
  return count(words.filter((word) => [...word].length >= shortestWord && isWord(word))) / letters;
}

/** How many pairs of letters are among the usual ones, which words of code are taken from, too. */
function shareOfUsual(words: readonly string[]): { pairs: number; share: number } {
  let pairs = 0;
  let usual = 0;
  for (const word of words) {
    const letters = latinLetters(word).toLowerCase();
    for (let at = 1; at < letters.length; at++) {
      pairs++;
      if (usualPairs.has(letters.slice(at - 1, at + 1))) usual++;
    }
  }
  return { pairs, share: usual / Math.max(pairs, 1) };
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

/** 1, or less where vowels are too few, or letters do not follow one another as they do in any language: a font with an order of its own often shows one letter for another. */
function speakable(text: string): number {
  const letters = latinLetters(text);
  if (letters.length < lettersToCount) return 1;
  const { pairs, share } = shareOfUsual(text.match(/\p{L}[\p{L}\p{M}]*/gu) ?? []);
  const isDisordered = pairs >= pairsToCount && share < disorder;
  return Math.min(isDisordered ? 0.5 : 1, (letters.match(vowels) ?? []).length / letters.length / leastVowels);
}

function latinLetters(text: string): string {
  return normalForm(text, 'NFD').replace(/\P{Script=Latin}/gu, '');
}
