import { entryOf, type FeedEntry } from './feed-entry.ts';

const longestLine = 10_000;

/** Reads a text sitemap piece by piece: an address a line. It has the shape of a FeedReader. */
export class LineReader {
  readonly kind = 'sitemap';
  items = 0;
  unlinked = 0;
  /** A text ends wherever it ends. */
  readonly complete = true;
  readonly next = null;
  ended = false;
  readonly #address: string;
  readonly #onEntry: (entry: FeedEntry) => boolean;
  /** The place behind the last line. */
  #at = 0;
  readonly #from: number;
  #rest = '';

  /** Lines that end at `from` or before are passed over. */
  constructor(address: string, onEntry: (entry: FeedEntry) => boolean, from: number) {
    this.#address = address;
    this.#onEntry = onEntry;
    this.#from = from;
  }

  write(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#take(line, 1);
    // No address is as long, and what goes on without a line end would be copied for each piece.
    if (this.#rest.length > longestLine) this.ended = true;
  }

  end(): void {
    if (this.#rest !== '') this.#take(this.#rest, 0);
    this.#rest = '';
  }

  #take(line: string, lineEnd: number): void {
    this.#at += line.length + lineEnd;
    if (this.ended || line.trim() === '' || this.#at <= this.#from) return;
    this.items++;
    const entry = /^\s*https?:/i.test(line) ? entryOf({ loc: line }, this.#address) : null;
    if (entry === null) this.unlinked++;
    else if (!this.#onEntry({ ...entry, end: this.#at })) this.ended = true;
  }
}
