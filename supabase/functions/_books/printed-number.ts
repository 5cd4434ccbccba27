/** A page number as it is printed. */
export interface PrintedNumber {
  style: 'roman' | 'arabic';
  value: number;
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

/** Reads a page number such as 12, xii, – 12 – or 12 / 57; null for anything else. */
export function readPrintedNumber(text: string): PrintedNumber | null {
  if (text.length > longestNumber) return null;
  const bare = text
    .trim()
    .replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '')
    .replace(/^(page|p|seite|s)\.?\s+/i, '')
    .replace(/^(\d{1,5})\s*(?:\/|of|von|sur)\s*\d{1,5}$/i, '$1');
  if (/^\d{1,5}$/.test(bare)) return { style: 'arabic', value: Number(bare) };
  const value = fromRoman(bare.toLowerCase());
  return value > 0 && (bare === bare.toLowerCase() || bare === bare.toUpperCase()) ? { style: 'roman', value } : null;
}

/** Writes the number as it is printed. */
export function printNumber({ style, value }: PrintedNumber): string {
  return style === 'arabic' ? String(value) : toRoman(value);
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
