import { TextDecoder } from '@exodus/bytes/encoding.js';
import { getEncoding } from 'encoding-sniffer/sniffer';
import { guessCharset, isIso2022 } from './guess-charset.ts';

/** The origin of a text, besides its bytes. */
export interface TextOrigin {
  /** The header Content-Type that came with the bytes; only its charset is read. */
  contentType?: string;
  /**
   * The format, which may declare a charset inside: HTML by a meta element, XML by its first line, plain text
   * nowhere.
   */
  kind?: 'html' | 'xml' | 'text';
}

/** A text with the charset that it was read in. */
export interface DecodedText {
  /** Without its byte order mark. */
  text: string;
  /** By its WHATWG name in lower case, such as utf-8 or shift_jis. */
  charset: string;
  /** Whether the bytes alone led to the charset: nothing names one, or the named one does not fit. */
  guessed: boolean;
  /** How many places the charset has no character for: each is U+FFFD in the text. */
  lost: number;
}

// Browsers look for a declaration in the first 1,024 bytes, and start over for one that their parser meets later.
const declarationBytes = 8192;
// The sniffer's answer where nothing is declared; no page is written in it.
const undeclared = 'x-user-defined';
/** The charset of servers that know nothing of their pages; iso-8859-1 is another name of it. */
const byDefault = 'windows-1252';
// Of the characters beyond ASCII: a damaged byte or a file's cut end costs fewer, a wrong charset more.
const mostLost = 0.1;
// A text of so few NULs is no UTF-16: every blank and line end has one.
const fewestNuls = 0.02;
const probeBytes = 64 * 1024;
const replacement = 0xfffd;

/**
 * Reads bytes as text by the WHATWG's order: byte order mark, header, declaration. A named charset that fits the bytes badly gets a
 * second look. Without a name the text is UTF-8 where its bytes allow it, else UTF-16 or an older charset by a guess.
 *
 * @example
 * ```ts
 * const contentType = response.headers.get('content-type') ?? '';
 * const { text, charset, guessed } = decodeText(bytes, { contentType, kind: 'html' });
 * ```
 */
export function decodeText(bytes: Uint8Array, { contentType = '', kind = 'text' }: TextOrigin = {}): DecodedText {
  const mark = markOf(bytes);
  if (mark) return decoded(bytes, mark, false);
  const utf8 = isIso2022(bytes) ? null : fitting(bytes, 'utf-8');
  const named = namedCharsets(bytes, contentType, kind);
  for (const [index, charset] of named.entries()) {
    // The name alone may leave open which byte comes first.
    const wide = charset.startsWith('utf-16') ? utf16ByNuls(bytes) : null;
    if (wide) return decoded(bytes, wide, wide !== charset);
    const read = charset === 'utf-8' ? utf8 : fitting(bytes, charset);
    // Latin-1 leaves no byte unread, but next to no text in it is valid UTF-8 as well.
    const isMistaken = charset === byDefault && utf8 !== null && utf8.text !== read?.text;
    if (read && !isMistaken) return { ...read, guessed: index > 0 };
  }
  const utf16 = (utf8 === null ? utf16ByLetters(bytes) : null) ?? utf16ByNuls(bytes, utf8 === null);
  if (utf16) return decoded(bytes, utf16, true);
  if (utf8) return { ...utf8, guessed: named.length > 0 };
  const guess = guessCharset(bytes);
  const [first = guess] = named;
  // Where nothing fits the bytes, the named charset is the best there is.
  return fitting(bytes, guess) ?? decoded(bytes, first, first !== named[0]);
}

/** The UTF-16 that a byte order mark names, or that the NULs of a text without a mark tell; null for anything else. */
export function utf16Of(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  const mark = markOf(bytes);
  if (mark === 'utf-8') return null;
  return mark ?? utf16ByNuls(bytes);
}

function markOf([first, second, third]: Uint8Array): 'utf-8' | 'utf-16le' | 'utf-16be' | null {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : null;
}

/**
 * A NUL is a byte of UTF-16 alone: it stands in front of Latin letters, blanks and line ends, or behind them. Of a Chinese text only
 * the line ends have one: `isNoUtf8` lets a single NUL do.
 */
function utf16ByNuls(bytes: Uint8Array, isNoUtf8 = false): 'utf-16le' | 'utf-16be' | null {
  const probe = bytes.subarray(0, Math.min(probeBytes, bytes.length - (bytes.length % 2)));
  const nuls: [number, number] = [0, 0];
  for (let at = probe.indexOf(0); at >= 0; at = probe.indexOf(0, at + 1)) nuls[at % 2 === 0 ? 0 : 1]++;
  const [before, behind] = nuls;
  const fewest = isNoUtf8 && Math.min(before, behind) === 0 ? 0 : probe.length * fewestNuls;
  if (Math.max(before, behind) < Math.max(1, fewest)) return null;
  const charset = before > behind ? 'utf-16be' : 'utf-16le';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no text has them, but binary files do.
  return /[\u0000-\u0008\u000e-\u001a\ufffd-\uffff]/.test(looseText(probe, charset)) ? null : charset;
}

/**
 * Chinese and Japanese without a line end have no NUL. All their units are letters of these scripts in one order of the bytes alone, and
 * some are kana or the scripts' own marks, or have a byte that is a control in other charsets.
 */
function utf16ByLetters(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  const probe = bytes.subarray(0, Math.min(probeBytes, bytes.length));
  if (bytes.length % 2 > 0) return null;
  const isControl = (byte: number) => byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d && byte !== 0x1b;
  const hasControl = probe.some(isControl);
  for (const charset of ['utf-16le', 'utf-16be'] as const) {
    const text = looseText(probe, charset);
    if (!/^[\n\r\t -~\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]+$/.test(text)) continue;
    const marks = text.match(/[\u3000-\u3003\u3008-\u301f\u3041-\u30ff\uff01-\uff5e]/g)?.length ?? 0;
    if (hasControl || marks > text.length * fewestNuls) return charset;
  }
  return null;
}

/** The header's charset and the declared one, without repeats and without labels that nobody knows. */
function namedCharsets(bytes: Uint8Array, contentType: string, kind: TextOrigin['kind']): string[] {
  const label = /charset\s*=\s*["']?([^\s"';]+)/i.exec(contentType)?.[1];
  const told = label === undefined ? undeclared : sniff(new Uint8Array(), { transportLayerEncodingLabel: label });
  const declared = kind === 'text' ? undeclared : sniff(bytes.subarray(0, declarationBytes), {});
  return [...new Set([told, declared])].filter((charset) => charset !== undeclared);
}

function sniff(bytes: Uint8Array, header: { transportLayerEncodingLabel?: string }): string {
  const options = { maxBytes: declarationBytes, defaultEncoding: undeclared };
  return getEncoding(bytes, { ...options, ...header }).toLowerCase();
}

/** The text in a charset, with a count of what it has no character for; null where that is too much for it to be right. */
function fitting(bytes: Uint8Array, charset: string): DecodedText | null {
  const read = decoded(bytes, charset, true);
  if (read.lost === 0) return read;
  return read.lost <= countFrom(read.text, 0x80) * mostLost ? read : null;
}

function decoded(bytes: Uint8Array, charset: string, guessed: boolean): DecodedText {
  try {
    return { text: new TextDecoder(charset, { fatal: true }).decode(bytes), charset, guessed, lost: 0 };
  } catch {
    const text = looseText(bytes, charset);
    return { text, charset, guessed, lost: countFrom(text, replacement, replacement) };
  }
}

/** How many units of the text lie between two codes. A list of them would take more memory than the text. */
function countFrom(text: string, least: number, most = 0xffff): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= least && unit <= most) count++;
  }
  return count;
}

function looseText(bytes: Uint8Array, charset: string): string {
  return new TextDecoder(charset).decode(bytes);
}
