import { TextDecoder } from '@exodus/bytes/encoding.js';
import { charsetDoubts } from '../../_services/text/charset-doubts.ts';
import { decodeText, utf16Of } from '../../_services/text/decode-text.ts';

/** So many bytes from the first one beyond ASCII on tell the charset. */
const sampleBytes = 4096;
const escapeByte = 0x1b;
const lineEnd = 0x0a;
const tagEnd = 0x3e;

/**
 * Decodes a feed as it arrives. ASCII bytes mean the same in nearly every charset, so the decoder picks the charset
 * at the first other byte. It uses the header, the declaration and a sample from that byte on.
 */
export class FeedDecoder {
  /** Doubts about its letters, in sentences; known once the text is over. */
  doubts: string[] = [];
  readonly #contentType: string;
  #decoder: TextDecoder | null = null;
  /** The declaration of the charset, to be read before a sample; null before the first bytes. */
  #declaration: Uint8Array | null = null;
  #undecided = new Uint8Array();

  constructor(contentType: string) {
    this.#contentType = contentType;
  }

  /** The text of the next bytes, as far as it can be told yet. */
  write(bytes: Uint8Array): string {
    if (this.#decoder) return this.#decoder.decode(bytes, { stream: true });
    if (this.#declaration === null) {
      this.#declaration = declarationOf(bytes);
      const wide = utf16Of(bytes);
      if (wide) return this.#decodeBy(wide, bytes);
    }
    this.#undecided = joined(this.#undecided, bytes);
    const first = this.#undecided.findIndex((byte) => byte >= 0x80 || byte === escapeByte);
    if (first === -1) return this.#ascii(this.#undecided.length);
    if (this.#undecided.length - first < sampleBytes) return this.#ascii(first);
    return this.#decide();
  }

  /** The rest of the text. */
  end(): string {
    const rest = this.#decoder || this.#undecided.length === 0 ? '' : this.#decide();
    return rest + (this.#decoder?.decode() ?? '');
  }

  /** Hands on the held bytes up to a place, before which all are ASCII. */
  #ascii(end: number): string {
    const text = new TextDecoder('utf-8').decode(this.#undecided.subarray(0, end));
    this.#undecided = this.#undecided.slice(end);
    return text;
  }

  #decide(): string {
    const sample = joined(this.#declaration ?? new Uint8Array(), wholeLetters(this.#undecided));
    const read = decodeText(sample, { contentType: this.#contentType, kind: 'xml' });
    // Lost characters show where they stand; the sample says only how the charset was found.
    this.doubts = charsetDoubts({ ...read, lost: 0 });
    return this.#decodeBy(read.charset, this.#undecided);
  }

  #decodeBy(charset: string, bytes: Uint8Array): string {
    this.#decoder = new TextDecoder(charset);
    this.#undecided = new Uint8Array();
    return this.#decoder.decode(bytes, { stream: true });
  }
}

/** Both, one behind the other. */
export function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

/** The XML declaration at the beginning of a feed, which is ASCII; empty where it has none. */
function declarationOf(bytes: Uint8Array): Uint8Array {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 200));
  return new TextEncoder().encode(/^\s*<\?xml[^>]*\?>/i.exec(head)?.[0].trim() ?? '');
}

/** The bytes up to the last end of a tag or line, which is no part of a longer character: a cut one would count as lost. */
function wholeLetters(bytes: Uint8Array): Uint8Array {
  const end = Math.max(bytes.lastIndexOf(tagEnd), bytes.lastIndexOf(lineEnd)) + 1;
  return end === 0 ? bytes : bytes.subarray(0, end);
}
