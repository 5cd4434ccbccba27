import type { FeedKind } from './feed-entry.ts';
import { readFeedAddress } from './fetch-feed.ts';
import { beginPass, type Cursor, type Problem, readCursor } from './pass.ts';
import { type FoundUrl, type Poller, Turn } from './turn.ts';

/** The source as its row has it. */
export interface Source {
  address: string;
  etag: string | null;
  last_modified: string | null;
  cursor: unknown;
}

/** What a source keeps after a poll that read anything. */
export interface SourceState {
  kind: FeedKind | null;
  etag: string | null;
  last_modified: string | null;
  cursor: Cursor;
}

/** What came of a poll. */
export interface Poll {
  urls: FoundUrl[];
  /** Whether it left off before the end. */
  more: boolean;
  /** What is wrong with the source though it can be used. */
  problem: Problem | null;
  /** How long the site wants to be left alone, in milliseconds. */
  waitMs: number | null;
  /** Null where nothing has changed. */
  state: SourceState | null;
}

/**
 * Polls a source: a conditional request where no pass is under way, else the pass goes on. Throws a StageError where its own
 * address cannot be read; what is wrong with one of the sitemaps it names is a problem of the poll's.
 */
export async function pollSource(source: Source, poller: Poller): Promise<Poll> {
  const address = readFeedAddress(source.address).href;
  const { since, pass: begun } = readCursor(source.cursor);
  const pass = begun ?? beginPass(address, poller.now());
  const turn = new Turn(pass, since, poller);
  const conditions = begun ? {} : { etag: source.etag, lastModified: source.last_modified };
  if (!(await turn.run(conditions))) return { urls: [], more: false, problem: null, waitMs: null, state: null };
  const { kind, urls, problem, waitMs } = turn;
  if (pass.next < pass.documents.length) {
    const { etag, last_modified } = source;
    return { urls, more: true, problem, waitMs, state: { kind, etag, last_modified, cursor: { since, pass } } };
  }
  // What had a problem is read again, though it may not have changed.
  const [etag, lastModified] = problem === null ? [pass.etag, pass.lastModified] : [null, null];
  const cursor = { since: problem === null ? pass.began : since, pass: null };
  return { urls, more: false, problem, waitMs: null, state: { kind, etag, last_modified: lastModified, cursor } };
}
