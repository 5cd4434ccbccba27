import { PermanentError, type StageError } from '../../_millrace/errors.ts';
import { webAddress } from '../clean-url.ts';
import type { FeedEntry, FeedKind } from './feed-entry.ts';
import { described, failureOf, isOwnFailure } from './feed-failure.ts';
import { type Conditions, type FeedAccess, type FetchedFeed, fetchFeed, readFeedAddress } from './fetch-feed.ts';
import {
  addPage,
  addSitemaps,
  type Cursor,
  MAX_SITEMAPS,
  nextDocument,
  noteUnread,
  type Pass,
  type Problem,
} from './pass.ts';
import { type ReadFeed, readFeed } from './read-feed.ts';

/** So many addresses are looked up at once. */
const atOnce = 1000;
/** Of an article in a poll's result: its date and its fields' names, and what a code unit has at most. */
const besideText = 100;
const bytesPerUnit = 3;
/** Pause after the refusal of a site that names no wait, in milliseconds. */
const rest = 60_000;

/** Bounds of one poll; the next poll takes the rest. */
export interface PollLimits {
  /** How many new addresses it takes. */
  newUrls: number;
  /** How many entries it looks at, new or not. */
  entries: number;
  /** How many bytes what it takes may have, at least: a stage's result is bounded. */
  bytes: number;
  /** How many feeds and sitemaps it fetches. */
  documents: number;
  /** After so long it begins no other. */
  ms: number;
}

/** An article that the queue does not have. */
export interface FoundUrl {
  url: string;
  title: string | null;
  published_at: string | null;
}

/** The means of a poll. */
export interface Poller {
  access: FeedAccess;
  limits: PollLimits;
  /** Returns the addresses that the queue lacks, each page once. */
  unknown(urls: string[]): Promise<string[]>;
  now(): Date;
}

/** One poll's part of a pass. */
export class Turn {
  readonly urls: FoundUrl[] = [];
  /** Format of the document at the source's own address; null where this poll has not read it. */
  kind: FeedKind | null = null;
  /** How long the site wants to be left alone before the pass goes on, in milliseconds. */
  waitMs: number | null = null;
  readonly #pass: Pass;
  readonly #last: Cursor;
  readonly #poller: Poller;
  #entries = 0;
  #bytes = 0;
  /** Why the site is left alone. */
  #asked: Problem | null = null;

  /** `last` is what the source keeps of the last pass. */
  constructor(pass: Pass, last: Cursor, poller: Poller) {
    this.#pass = pass;
    this.#last = last;
    this.#poller = poller;
  }

  /** The problem with a source that can be used all the same; null where there is none. */
  get problem(): Problem | null {
    const { problem, unread } = this.#pass;
    if (problem === null || unread.length < 2) return problem ?? this.#asked;
    return {
      ...problem,
      message: `${problem.message} Of its other sitemaps ${unread.length - 1} had something wrong too.`,
    };
  }

  /** Reads on until the pass or what a poll may do is at its end. Returns false where nothing has changed. */
  async run(conditions: Conditions): Promise<boolean> {
    const { limits, now } = this.#poller;
    const pass = this.#pass;
    const started = now().getTime();
    for (let fetched = 0; pass.next < pass.documents.length && this.waitMs === null; fetched++) {
      if (fetched >= limits.documents || this.#entries >= limits.entries || this.#isFull()) break;
      if (fetched > 0 && now().getTime() - started > limits.ms) break;
      const isFirst = pass.next === 0;
      const read = await this.#read(isFirst ? conditions : this.#conditions());
      if (read === 'unchanged' && isFirst) return false;
      if (read === 'unchanged') nextDocument(pass);
      else if (read?.kind === 'sitemap_index') this.#addSitemaps(read);
      else if (read) await this.#takeNew(read);
    }
    return true;
  }

  /** Fetches and reads the next document; null where it cannot be read and is passed over. */
  async #read(conditions: Conditions): Promise<ReadFeed | 'unchanged' | null> {
    try {
      const feed = await this.#fetch(conditions);
      return feed === null ? 'unchanged' : await this.#readFetched(feed);
    } catch (error) {
      this.#poller.access.signal.throwIfAborted();
      this.#passOver(failureOf(error, this.#pass.documents[this.#pass.next] as string));
      return null;
    }
  }

  /** Goes on without a sitemap that cannot be read. Throws for the source's own address. */
  #passOver(failure: StageError): void {
    const pass = this.#pass;
    if (pass.next === 0 || isOwnFailure(failure)) throw failure;
    const problem = described(failure, pass.documents[pass.next] as string);
    if (failure.code === 'rate_limited') {
      this.waitMs = failure.retryAfterMs ?? rest;
      this.#asked = problem;
      return;
    }
    noteUnread(pass, problem);
    nextDocument(pass);
  }

  /** Under which a sitemap is sent: where it has changed since the last pass, unless it has to be read again. */
  #conditions(): Conditions {
    const isAgain = this.#pass.again.includes(this.#pass.next);
    return isAgain ? {} : { lastModified: httpDate(this.#last.since) };
  }

  async #fetch(conditions: Conditions): Promise<FetchedFeed | null> {
    const address = this.#pass.documents[this.#pass.next] as string;
    return fetchFeed(readFeedAddress(address), conditions, this.#poller.access);
  }

  async #readFetched(feed: FetchedFeed): Promise<ReadFeed> {
    const pass = this.#pass;
    const most = this.#poller.limits.entries - this.#entries;
    let read = await readFeed(feed, pass.at, most);
    if (read.problem?.code === 'feed_cut_off' && feed.wasPacked) {
      // Newer Deno unpacks the first gzip member of several alone.
      const again = await this.#fetch({ unpacked: true });
      if (again) read = await readFeed(again, pass.at, most);
    }
    this.#entries += read.entries.length;
    if (pass.next === 0) {
      this.kind = read.kind;
      if (pass.at === 0) Object.assign(pass, { etag: feed.etag, lastModified: feed.lastModified });
    }
    if (read.problem) this.#note(read.problem, feed.url);
    return read;
  }

  /**
   * Notes a problem with a usable document. A guessed charset lasts until the source changes. So does any problem of
   * the document at the source's own address, unless it was cut off.
   */
  #note(found: StageError, address: string): void {
    const problem = described(found, address);
    const isLasting = found.code === 'charset_guessed' || (this.#pass.next === 0 && found.code !== 'feed_cut_off');
    if (isLasting) this.#pass.problem ??= problem;
    else noteUnread(this.#pass, problem);
  }

  #addSitemaps({ entries }: ReadFeed): void {
    const pass = this.#pass;
    // An index without dates does not tell whether its sitemaps have changed.
    const isUndated = pass.next === 0 && entries.some(({ at }) => at === null);
    if (isUndated) Object.assign(pass, { etag: null, lastModified: null });
    if (!addSitemaps(pass, entries, this.#last)) this.#noteTooMany('too_many_sitemaps', 'sitemaps', 'some');
    nextDocument(pass);
  }

  /** Takes what the queue does not have, as far as the poll may, and moves on behind the last entry that was judged. */
  async #takeNew({ entries, whole, next }: ReadFeed): Promise<void> {
    const pass = this.#pass;
    for (let from = 0; from < entries.length; from += atOnce) {
      const found = entries.slice(from, from + atOnce).map(foundUrl);
      const fresh = new Set(await this.#poller.unknown(found.flatMap(({ url }) => url ?? [])));
      for (const { url, title, published_at, end } of found) {
        // Taken off, so that what a feed names twice is taken once.
        if (url !== null && fresh.has(url)) {
          pass.fresh = true;
          if (this.#isFull()) return;
          fresh.delete(url);
          this.urls.push({ url, title, published_at });
          this.#bytes += besideText + url.length + bytesPerUnit * (title?.length ?? 0);
        }
        pass.at = end;
      }
    }
    if (!whole) return;
    // An empty page is the last one, whatever it names as its next.
    const isLast = next === null || (entries.length === 0 && pass.at === 0);
    if (!isLast && !addPage(pass, next, this.#last))
      this.#noteTooMany('too_many_feed_pages', 'pages', 'feeds of sections');
    nextDocument(pass);
  }

  /** Notes that the source has more documents than are read. */
  #noteTooMany(code: string, what: string, instead: string): void {
    const pass = this.#pass;
    const said = `It has more than ${MAX_SITEMAPS} ${what}, and the rest is left out: enter ${instead} as sources of their own.`;
    pass.problem ??= described(new PermanentError(code, said), pass.documents[0] as string);
  }

  #isFull(): boolean {
    const { newUrls, bytes } = this.#poller.limits;
    return this.urls.length >= newUrls || this.#bytes >= bytes;
  }
}

/** The entry as the queue takes it; without an address where it cannot be an article's. */
function foundUrl({ url, title, at, end }: FeedEntry) {
  return { url: webAddress(url), title, published_at: at, end };
}

/** A date as conditional requests have it, an hour early: the site's clock may be slow. */
function httpDate(iso: string | null): string | null {
  return iso === null ? null : new Date(Date.parse(iso) - 3_600_000).toUTCString();
}
