import { Buffer } from 'node:buffer';
import { inflateSync } from 'node:zlib';

/** A content stream, with the texts that the file gives for some of its glyphs (ActualText). */
export interface PaintedStream {
  /** The codes that it shows, in order, as bytes without zeros: so a code is the same in one byte and in two. */
  codes: string;
  /** Each is a stretch of `codes`; text is null where the file's text has no charset that is known. */
  replacements: { from: number; to: number; text: string | null }[];
}

/** The content streams of a file, which are unpacked and read one by one as they are looked for. */
export interface ContentStreams {
  /**
   * The streams that paint a page's codes, or parts of them; none where there are none. `share` says how far behind in the file they
   * are likely to stand, from 0 to 1.
   */
  find(codes: string, share: number): PaintedStream[];
  /** Whether any stream of the file gives a text of its own. */
  hasTexts(): boolean;
  /** Whether all streams could be read: an encrypted one, or one in an old compression, cannot, and too many are not. */
  isWhole(): boolean;
}

interface PackedStream {
  bytes: Buffer;
  dictionary: string;
}

// Unpacked, of streams that were not looked for: as much takes half a second.
const mostInVain = 24 * 1024 * 1024;
const mostUnpacked = 64 * 1024 * 1024;
// Pages mostly follow one another in the file: so many streams are looked at in any case.
const nextStreams = 4;
const mostDictionary = 2000;
// Pictures, fonts, colours and the file's own tables have no text.
const otherStream =
  /\/(?:Subtype\s*\/(?:Image|XML|Type1C|CIDFontType0C|OpenType)|Type\s*\/(?:XRef|ObjStm|Metadata|EmbeddedFile|CMap)|Length[123]\b|FunctionType|ShadingType|Alternate|Predictor)/;
// Names, strings, comments, and the operators that show text or mark content; numbers and what is drawn are passed over.
const token =
  /(\/[^\s()<>[\]{}/%]*)|<([0-9A-Fa-f\s]*)>|\(|%[^\r\n]*|(?<![^\s\])>])(T[jJ]|['"]|BDC|BMC|EMC|DP|ID)(?![^\s[(</%])/g;

/** Lists a file's content streams, without reading them. */
export function contentStreams(bytes: Uint8Array): ContentStreams {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const streams = packedStreams(file);
  let isWhole = !file.includes('/Encrypt');
  let hasTexts = false;
  let inVain = 0;
  let next = 0;
  let searched = 0;
  let isFirst = true;
  const unpack = (index: number) => {
    const content = unpacked(streams[index] as PackedStream);
    if (!content) isWhole = false;
    hasTexts ||= content?.includes('/ActualText') ?? false;
    return content;
  };
  return {
    find(codes, share) {
      const parts: PaintedStream[] = [];
      if (isFirst) next = Math.floor(share * streams.length);
      isFirst = false;
      for (let count = 0; count < streams.length; count++) {
        if (count >= nextStreams && inVain > mostInVain) {
          isWhole = false;
          break;
        }
        const index = (next + count) % streams.length;
        const content = unpack(index);
        if (!content) continue;
        const stream = readStream(content.toString('latin1'));
        const isSame = stream.codes === codes;
        if (isSame || (stream.codes !== '' && codes.includes(stream.codes))) parts.push(stream);
        else inVain += content.length;
        if (isSame) next = index + 1;
        if (isSame) return [stream];
      }
      return parts;
    },
    hasTexts() {
      // Each call goes on where the former one ended, so that pages do not read the file anew.
      for (; searched < streams.length && !hasTexts; searched++) {
        if (inVain > mostInVain) isWhole = false;
        if (inVain > mostInVain) break;
        inVain += unpack(searched)?.length ?? 0;
      }
      return hasTexts;
    },
    isWhole: () => isWhole,
  };
}

function packedStreams(file: Buffer): PackedStream[] {
  const streams: PackedStream[] = [];
  for (let at = file.indexOf('stream'); at >= 0; at = file.indexOf('stream', at)) {
    const head = file.toString('latin1', Math.max(0, at - mostDictionary), at);
    const start = at + 'stream'.length + (file[at + 'stream'.length] === 13 ? 2 : 1);
    const end = file.indexOf('endstream', start);
    if (end < 0) break;
    at = end + 'endstream'.length;
    const dictionary = head.slice(head.lastIndexOf(' obj') + 1);
    if (/>>\s*$/.test(head) && !otherStream.test(dictionary))
      streams.push({ bytes: file.subarray(start, end), dictionary });
  }
  return streams;
}

function unpacked({ bytes, dictionary }: PackedStream): Buffer | null {
  if (!dictionary.includes('/Filter')) return bytes;
  if (!/\/Filter\s*\[?\s*\/Fl(?:ateDecode)?\s*(?:\]|\/(?!\w+Decode)|>>)/.test(dictionary)) return null;
  try {
    return inflateSync(bytes, { maxOutputLength: mostUnpacked });
  } catch {
    return null;
  }
}

/** Reads which codes a content stream shows, and which of them it replaces. */
function readStream(content: string): PaintedStream {
  const stream: PaintedStream = { codes: '', replacements: [] };
  const marks: { from: number; text: string | null | undefined }[] = [];
  let strings: string[] = [];
  let actual: string | undefined;
  let isActual = false;
  const show = () => {
    stream.codes += strings.join('').replaceAll('\0', '');
  };
  const operators: Record<string, () => void> = {
    Tj: show,
    TJ: show,
    "'": show,
    '"': show,
    BDC: () => marks.push({ from: stream.codes.length, text: actual === undefined ? undefined : textOf(actual) }),
    BMC: () => marks.push({ from: stream.codes.length, text: undefined }),
    EMC: () => {
      const mark = marks.pop();
      const isInner = marks.some(({ text }) => text !== undefined);
      if (mark?.text === undefined || isInner || mark.from === stream.codes.length) return;
      stream.replacements.push({ from: mark.from, to: stream.codes.length, text: mark.text });
    },
  };
  const operands = (text: string) => {
    if (isActual) actual = text;
    else strings.push(text);
    isActual = false;
  };
  token.lastIndex = 0;
  for (let match = token.exec(content); match; match = token.exec(content)) {
    const [all, name, hex, operator] = match;
    if (name !== undefined) isActual = name === '/ActualText';
    else if (hex !== undefined) operands(latin1Of(hex));
    else if (all === '(') operands(literal(content, token));
    else if (operator === 'ID') token.lastIndex = endOfImage(content, token.lastIndex);
    else if (operator !== undefined) {
      operators[operator]?.();
      strings = [];
      actual = undefined;
    }
  }
  return stream;
}

function latin1Of(hex: string): string {
  const digits = /\s/.test(hex) ? hex.replaceAll(/\s/g, '') : hex;
  return Buffer.from(digits.length % 2 ? `${digits}0` : digits, 'hex').toString('latin1');
}

function endOfImage(content: string, from: number): number {
  const end = content.slice(from).search(/\sEI(?=\s|$)/);
  return end < 0 ? content.length : from + end + '\nEI'.length;
}

const escapes: Record<string, string> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

/** The string whose opening bracket was read last; `scanner` goes on behind its closing one. */
function literal(content: string, scanner: RegExp): string {
  let text = '';
  let depth = 1;
  let at = scanner.lastIndex;
  for (; at < content.length; at++) {
    const sign = content[at] as string;
    if (sign === '\\') {
      const escaped = /^(?:([0-7]{1,3})|(\r\n|[\r\n])|([\s\S]))/.exec(content.slice(at + 1, at + 4));
      const [all = '', octal, newline, other = ''] = escaped ?? [];
      if (octal) text += String.fromCharCode(Number.parseInt(octal, 8) & 255);
      else if (!newline) text += escapes[other] ?? other;
      at += all.length;
      continue;
    }
    if (sign === '(') depth++;
    if (sign === ')' && --depth === 0) break;
    text += sign;
  }
  scanner.lastIndex = at + 1;
  return text;
}

/** A text string of PDF: UTF-16 or UTF-8 by its mark, else PDF's own charset, of which only ASCII is taken. */
function textOf(string: string): string | null {
  const bytes = Buffer.from(string, 'latin1');
  const charset = string.startsWith('\u00fe\u00ff')
    ? 'utf-16be'
    : string.startsWith('\u00ff\u00fe')
      ? 'utf-16le'
      : string.startsWith('\u00ef\u00bb\u00bf')
        ? 'utf-8'
        : undefined;
  // Between two escapes the text names its language.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escapes are what is looked for.
  if (charset) return new TextDecoder(charset).decode(bytes).replaceAll(/\u001b[^\u001b]*\u001b/g, '');
  return /^[\t\n\r -~]*$/.test(string) ? string : null;
}
