import { TextDecoder } from '@exodus/bytes/encoding.js';
import { analyse } from 'chardet';

// Enough to tell any language by its letters.
const sampleBytes = 8192;
/** Charsets that chardet never names or that come before others, each with the one that has its letters, and so its confidence. */
const besides: [charset: string, like: string][] = [
  ['windows-1252', 'windows-1252'],
  ['windows-1250', 'iso-8859-2'],
  ['windows-1253', 'iso-8859-7'],
  ['windows-1255', 'iso-8859-8'],
  ['koi8-r', 'koi8-r'],
  ['koi8-u', 'koi8-r'],
  ['ibm866', 'none'],
  ['windows-874', 'none'],
];
const narrow = 'windows-1252';
const lineEnd = 0x0a;
// Hardly a Japanese text is written without them.
const withoutKana = 0.8;

/**
 * Of charsets of two bytes a character: the first bytes of those that most texts are written in, by the standards' own order.
 * The rest of each is rare.
 */
const usual: Record<string, [number, number][]> = {
  shift_jis: [
    [0x81, 0x83],
    [0x88, 0x97],
  ],
  'euc-jp': [
    [0xa1, 0xa1],
    [0xa4, 0xa5],
    [0xb0, 0xcf],
  ],
  gb18030: [
    [0xa1, 0xa1],
    [0xa3, 0xa3],
    [0xb0, 0xd7],
  ],
  big5: [
    [0xa1, 0xa2],
    [0xa4, 0xc6],
  ],
  'euc-kr': [
    [0xa1, 0xa1],
    [0xa3, 0xa3],
    [0xb0, 0xc8],
  ],
};

/** The letters beyond ASCII of languages in Latin script: a charset that mixes two languages' letters is the wrong one. */
const alphabets = [
  'äöüß',
  'àâæçéèêëîïôœùûüÿ',
  'áéíñóúüªº',
  'àáâãçéêíóôõúü',
  'àèéìíîòóùú',
  'åäöæøéü',
  'áðéíóúýþæö',
  'ąćęłńóśźż',
  'áčďéěíňóřšťúůýž',
  'áäčďéíĺľňóôŕšťúýž',
  'áéíóöőúüű',
  'ăâîșțşţ',
  'čćđšž',
  'çğıİöşüâîû',
  'ąčęėįšųūž',
  'āčēģīķļņšūž',
  'äöõüšž',
];

/**
 * The charset of bytes that are no UTF-8, by their letters: chardet's frequencies of letters, weighed with how many of the words
 * are written as words are. A text too short to tell is taken for Windows-1252.
 */
export function guessCharset(bytes: Uint8Array): string {
  if (isIso2022(bytes)) return 'iso-2022-jp';
  const sample = sampleOf(bytes);
  // Of two that are as likely the first is taken: Windows' own before the ISO's.
  const confidences = new Map(besides.map(([charset]) => [charset, 0]));
  for (const { name, confidence } of analyse(sample)) {
    const charset = new TextDecoder(name).encoding;
    if (!/^utf/.test(charset)) confidences.set(charset, Math.max(confidence, confidences.get(charset) ?? 0));
  }
  for (const [charset, like] of besides) {
    confidences.set(charset, Math.max(confidences.get(charset) ?? 0, confidences.get(like) ?? 0));
  }
  let best = { charset: narrow, score: 0 };
  for (const [charset, confidence] of confidences) {
    const score = likelihood(sample, charset) * (100 + confidence);
    if (score > best.score) best = { charset, score };
  }
  return best.charset;
}

/** Whether Japanese is written in seven bits, with escapes that open and close it. */
export function isIso2022(bytes: Uint8Array): boolean {
  const at = bytes.indexOf(0x1b);
  return at >= 0 && bytes[at + 1] === 0x24 && (bytes[at + 2] === 0x40 || bytes[at + 2] === 0x42);
}

/** The lines with other bytes than ASCII. Tags end a line: none of these charsets has the bytes of < and > inside a character. */
function sampleOf(bytes: Uint8Array): Uint8Array {
  const sample = new Uint8Array(sampleBytes);
  let length = 0;
  let start = 0;
  let isForeign = false;
  for (let at = 0; at <= bytes.length && length < sampleBytes; at++) {
    const byte = bytes[at] ?? lineEnd;
    if (byte >= 0x80) isForeign = true;
    if (byte !== lineEnd && byte !== 0x3c && byte !== 0x3e) continue;
    if (isForeign) {
      const line = bytes.subarray(start, Math.min(at, start + sampleBytes - length - 1));
      sample.set(line, length);
      length += line.length;
      sample[length++] = lineEnd;
    }
    start = at + 1;
    isForeign = false;
  }
  return sample.subarray(0, length);
}

/** From 0 to 1: the share of the foreign letters that stand where this charset's texts have them. */
function likelihood(sample: Uint8Array, charset: string): number {
  const text = new TextDecoder(charset).decode(sample);
  const leads = usual[charset];
  if (!leads) return wordShare(text) * languageShare(text);
  const share = usualShare(sample, leads) * knownShare(text);
  return /jis|jp/.test(charset) && !/[ぁ-ヿ]/.test(text) ? share * withoutKana : share;
}

/** The share of characters that the charset has. The sample may end inside one. */
function knownShare(text: string): number {
  const unknown = text.match(/[\ufffd\ue000-\uf8ff]/gu)?.length ?? 0;
  return unknown <= 1 ? 1 : 1 / (1 + unknown);
}

function usualShare(sample: Uint8Array, leads: [number, number][]): number {
  let all = 0;
  let good = 0;
  for (let at = 0; at < sample.length; at++) {
    const byte = sample[at] as number;
    if (byte < 0x80) continue;
    all++;
    if (leads.some(([low, high]) => byte >= low && byte <= high)) good++;
    at++;
  }
  return all === 0 ? 0 : good / all;
}

/** The share of foreign characters in words as people write them: one script, and capitals at the beginning or throughout. */
function wordShare(text: string): number {
  let all = 0;
  let good = 0;
  for (const piece of text.match(/\S+/g) ?? []) {
    const foreign = piece.match(/[^\0-\x7f]/g)?.length ?? 0;
    all += foreign;
    if (foreign > 0 && isWritten(piece)) good += foreign;
  }
  return all === 0 ? 0 : good / all;
}

/** The share of the Latin letters beyond ASCII that one language has. */
function languageShare(text: string): number {
  const letters = text.toLowerCase().match(/(?![a-z])\p{Script=Latin}/gu) ?? [];
  if (letters.length === 0) return 1;
  const counts = alphabets.map((alphabet) => letters.filter((letter) => alphabet.includes(letter)).length);
  return Math.max(...counts) / letters.length;
}

const mark = String.raw`[\p{P}\p{Sc}\p{Sm}\d©®°§¶™]`;
const outerMarks = new RegExp(`^${mark}+|(?<!${mark})${mark}+$`, 'gu');
const innerMarks = /[\p{Pd}'’.,:&/…()]+/u;
const scripts = ['Latin', 'Cyrillic', 'Greek', 'Hebrew', 'Arabic', 'Thai'].map(
  (script) => new RegExp(String.raw`^[\p{Script=${script}}\p{M}]+$`, 'u'),
);

function isWritten(piece: string): boolean {
  const core = piece.replace(outerMarks, '');
  return core === '' || core.split(innerMarks).every(isWord);
}

function isWord(part: string): boolean {
  if (/^\d*$/.test(part)) return true;
  return /^(?:\p{Lu}+|\p{Lu}?[\p{Ll}\p{Lo}\p{M}]+)$/u.test(part) && scripts.some((script) => script.test(part));
}
