/** A page number as it is printed. */
export interface PrintedNumber {
  style: 'roman' | 'arabic';
  value: number;
  /**
   * The part before the value where each chapter counts its own pages, such as the "2-" of 2-1 and the "A-" of A-3.
   */
  prefix?: string | undefined;
}

const numerals: [string, number][] = [
  ['m', 1000],
  ['cm', 900],
  ['d', 500],
  ['cd', 400],
  ['c', 100],
  ['xc', 90],
  ['l', 50],
  ['xl', 40],
  ['x', 10],
  ['ix', 9],
  ['v', 5],
  ['iv', 4],
  ['i', 1],
];

/** A longer text holds more than a number. */
const longestNumber = 40;
const romanFirst = 100_000;
const mostInChapter = 1_000;
/** Appendices follow the chapters. */
const lettersAfter = 100;

const zeros = [0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10];

/**
 * Reads a page number such as 12, xii, – 12 –, (12), 2-1, A-3 or 12 / 57, in digits of any script; of a range such as 12–15 the first.
 * Null for anything else.
 */
export function readPrintedNumber(text: string): PrintedNumber | null {
  if (text.length > longestNumber) return null;
  const bare = plainDigits(text)
    .trim()
    .replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '')
    .replace(/^(page|p|seite|s|стр)\.?\s+|^第\s*|\s*[页頁]$/giu, '')
    .replace(/^(\d{1,5})\s*(?:\/|of|von|sur)\s*\d{1,5}$/i, '$1')
    .replace(/^(\d{1,5})\s*[–—~〜]\s*\d{1,5}$/, '$1');
  if (/^\d{1,5}$/.test(bare)) return { style: 'arabic', value: Number(bare) };
  const [, chapter, own] = /^(\d{1,2}|[A-Z])[-\u2010\u2011](\d{1,3})$/.exec(bare) ?? [];
  if (chapter && own) return { style: 'arabic', value: Number(own), prefix: `${chapter}-` };
  const value = fromRoman(bare.toLowerCase());
  return value > 0 && (bare === bare.toLowerCase() || bare === bare.toUpperCase()) ? { style: 'roman', value } : null;
}

/** Where a number stands among those of a book: roman ones come first, those of chapters in their order. */
export function orderOf({ style, value, prefix = '' }: PrintedNumber): number {
  if (style === 'roman') return value - romanFirst;
  const chapter = /^\d/.test(prefix) ? Number.parseInt(prefix, 10) : prefix ? prefix.charCodeAt(0) + lettersAfter : 0;
  return value + chapter * mostInChapter;
}

/** Writes the number as it is printed. */
export function printNumber({ style, value, prefix = '' }: PrintedNumber): string {
  return prefix + (style === 'arabic' ? String(value) : toRoman(value));
}

/** The digits of Arabic, Persian, Indian and East Asian texts as those of Europe. */
function plainDigits(text: string): string {
  return text.replace(/[^\P{Nd}0-9]/gu, (digit) => {
    const code = digit.charCodeAt(0);
    const zero = zeros.find((first) => code >= first && code <= first + 9);
    return zero === undefined ? digit : String(code - zero);
  });
}

function fromRoman(text: string): number {
  let rest = text;
  let value = 0;
  for (const [numeral, worth] of numerals) {
    while (rest.startsWith(numeral)) {
      value += worth;
      rest = rest.slice(numeral.length);
    }
  }
  // Letters in any other order are a word, such as "mild" or "ci".
  return rest === '' && toRoman(value) === text ? value : 0;
}

function toRoman(number: number): string {
  let rest = number;
  let text = '';
  for (const [numeral, worth] of numerals) {
    while (rest >= worth) {
      text += numeral;
      rest -= worth;
    }
  }
  return text;
}
