import { estimateTokenCount } from 'tokenx';

// An estimate. The platform embeds packages whole, and a tokenizer weighs 4 to 8 MB with its tables, more than one function may.
// tokenx knows English, code, Chinese, Japanese and Korean. Of what it counts too low, these are the characters that OpenAI's
// o200k_base takes for a token. A test holds the sum to that tokenizer.
const languageConfigs = [
  // Cyrillic, Armenian, Georgian.
  { pattern: /[\u0400-\u058f\u10a0-\u10ff]/, averageCharsPerToken: 3.8 },
  // Hebrew, Arabic.
  { pattern: /[\u0590-\u08ff]/, averageCharsPerToken: 2.8 },
  // The scripts of India and Sri Lanka.
  { pattern: /[\u0900-\u0dff]/, averageCharsPerToken: 3.4 },
  // Thai, Lao, Burmese.
  { pattern: /[\u0e00-\u0eff\u1000-\u109f]/, averageCharsPerToken: 1.8 },
  // Accents of their own.
  { pattern: /[\u0300-\u036f]/, averageCharsPerToken: 0.8 },
  // All but Latin, Greek, punctuation, Chinese, Japanese and Korean: other scripts, symbols, emoji.
  { pattern: /[^\0-\u03ff\u1e00-\u206f\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]/, averageCharsPerToken: 0.4 },
  // Hashes, keys, base64.
  { pattern: /^(?=.*\d)(?=.*[a-z])[\da-z]{8,}$/i, averageCharsPerToken: 1.5 },
];
const options = { languageConfigs, defaultCharsPerToken: 5 };

/**
 * Bytes of UTF-8 that an estimated token holds at most. A true token of any model holds at least one byte. So no text
 * has more true tokens than this many times its estimate.
 */
export const MOST_BYTES = 10;

// A word with the blanks before it. Longer ones, which no language has, are several.
const words = /\s{0,64}(?:[\p{L}\p{M}\p{N}]{1,64}|[^\s\p{L}\p{M}\p{N}]{1,64})|\s{1,64}/gu;
// Most words of most texts, of which tokenx, which takes long, says the same: one token, and one for a new line before it.
const commonWord =
  /^[ \t\r\n]{0,2}(?:[a-z]{1,8}|(?!\d{4,5}$)[A-Za-z\d]{1,5}|[.,!?;(){}[\]<>:/\\|@#$%^&*+=`~_"-]{1,6})$/;
const utf8 = new TextEncoder();
/** Counts of tokenx by word: several passes over a text count the same words. */
const known = new Map<string, number>();
const MOST_KNOWN = 200_000;

/** About how many tokens a model reads in the text. */
export function countTokens(text: string): number {
  return wordsOf(text).reduce((sum, word) => sum + tokensOf(word), 0);
}

/**
 * The text in pieces of about a token each, with the place where each starts, in UTF-16 code units. A character that takes
 * several tokens is one piece, so that no piece ends within it.
 */
export function tokenPieces(text: string): { text: string; start: number }[] {
  const pieces: { text: string; start: number }[] = [];
  let start = 0;
  for (const word of wordsOf(text)) {
    const tokens = tokensOf(word);
    for (const piece of tokens === 1 ? [word] : inParts(word, tokens)) {
      pieces.push({ text: piece, start });
      start += piece.length;
    }
  }
  return pieces;
}

function wordsOf(text: string): string[] {
  return text.match(words) ?? [];
}

function tokensOf(word: string): number {
  if (commonWord.test(word)) return word.includes('\n') ? 2 : 1;
  let tokens = known.get(word);
  if (tokens === undefined) {
    if (known.size === MOST_KNOWN) known.clear();
    tokens = estimateOf(word);
    known.set(word, tokens);
  }
  return tokens;
}

function estimateOf(word: string): number {
  return Math.max(1, estimateTokenCount(word, options), Math.ceil(utf8.encode(word).length / MOST_BYTES));
}

/** The word in `count` parts of like length; in fewer where it has fewer characters. */
function inParts(word: string, count: number): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let part = 1; part <= count; part++) {
    const end = characterEnd(word, Math.round((word.length * part) / count));
    if (end > from) parts.push(word.slice(from, end));
    from = Math.max(from, end);
  }
  return parts;
}

/** The place, or the next one where it lies between the halves of a surrogate pair. */
function characterEnd(text: string, at: number): number {
  return (text.codePointAt(at - 1) ?? 0) > 0xffff ? at + 1 : at;
}
