import { diffChars } from 'diff';
import { excerpt } from '../_millrace/mod.ts';

const likeness = 0.8;
/** Only the beginning of a longer title is compared. */
const longestTitle = 300;

/** Added to an appendix's letter, so that appendices do not look like chapters that are counted anew. */
const appendixLetters = 1000;

// A letter may follow at once where the number has several parts, as in "5.10.1Options". An I before a blank is a word.
const ownNumber =
  /^\s*(?:(?:chapter|part|section|appendix|kapitel|teil|anhang|chapitre|partie)\s+)?(?:(?:\d{1,4}|[a-z])(?:\.\d{1,4}){1,6}(?!\.?\d)(?:[.):]{0,2}\s*)|(?:\d{1,4}|(?=[ivxlc])(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})(?![ivxlc])|(?<=\w\s+)[a-z])(?![.]\d)(?:[.):]{1,2}\s*|(?<!^\s*i)\s+))(?=\S)/;

/** Strips a title of its number, dots and case, to what two spellings of it have in common. */
export function titleKey(title: string): string {
  return excerpt(title, longestTitle)
    .normalize('NFKD')
    .toLowerCase()
    .replace(ownNumber, '')
    .replace(/[^\p{L}\p{N}]+/gu, '');
}

/** A letter before a title may be its number, as of an appendix, or its first word: both keys count. */
export function titleKeys(title: string): string[] {
  const [, rest] = /^\p{Lu}\.?\s+(\S.*)$/u.exec(title) ?? [];
  return rest ? [titleKey(title), titleKey(rest)] : [titleKey(title)];
}

/** Says whether two titles are the same, some misread letters aside. */
export function alikeTitles(one: string, other: string): boolean {
  return alikeKeys(titleKey(one), titleKey(other));
}

/** Says the same of two keys of titles. */
export function alikeKeys(a: string, b: string): boolean {
  if (a === b) return a !== '';
  const length = Math.max(a.length, b.length);
  if (Math.min(a.length, b.length) < length * likeness) return false;
  // Comparing them letter by letter takes long, and few titles consist of the same letters.
  if (sharedLetters(a, b) < length * likeness) return false;
  const same = diffChars(a, b).reduce((sum, { added, removed, count = 0 }) => sum + (added || removed ? 0 : count), 0);
  return same >= length * likeness;
}

const numbered =
  /^\s*(?:\p{L}{4,9}\s+)?(?:((?:\d{1,3}|[A-Z])(?:\.\d{1,3}){1,6})(?!\.?\d)(?:[.):]{1,2}\s*|\s+|(?=\p{L}))\S|(\d{1,3})(?!\.\d)(?:[.):]{1,2}\s*|\s+)\S)/u;

/**
 * The numbers that a title begins with, such as [4, 2] for "4.2 Oil", or [1002, 1] for "B.1 Tools"; null where it has
 * none. A word before the first number, such as "Chapter" or "Part", makes no difference.
 */
export function numbersOf(title: string): number[] | null {
  const found = numbered.exec(title);
  const digits = found?.[1] ?? found?.[2];
  if (!digits) return null;
  return digits.split('.').map((part) => (/\d/.test(part) ? Number(part) : appendixLetters + part.charCodeAt(0) - 64));
}

const lettered = /^\s*(?:(?:Appendix|Anhang|Annexe?|Apéndice)\s+)?[A-Z][.:]?\s+\p{L}/u;

/** Says whether a title begins with a number, or with a letter as an appendix does: "A Tools" in contents that number their chapters. */
export function isCounted(title: string): boolean {
  return numbersOf(title) !== null || lettered.test(title);
}

function sharedLetters(a: string, b: string): number {
  const counts = new Map<string, number>();
  for (const letter of a) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  let shared = 0;
  for (const letter of b) {
    const left = counts.get(letter) ?? 0;
    if (left === 0) continue;
    counts.set(letter, left - 1);
    shared += letter.length;
  }
  return shared;
}
