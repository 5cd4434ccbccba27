import type { FeedKind } from './feed-entry.ts';
import { readFeedAddress } from './fetch-feed.ts';
import { beginPass, type Cursor, cursorAfter, type Problem, readCursor } from './pass.ts';
import { type FoundUrl, type Poller, Turn } from './turn.ts';

/** The source as its row has it. */
export interface Source {
  address: string;
  etag: string | null;
  last_modified: string | null;
  cursor: unknown;
}

/** The state that a source keeps after a poll that read anything. */
export interface SourceState {
  kind: FeedKind | null;
  etag: string | null;
  last_modified: string | null;
  cursor: Cursor;
}

/** The result of a poll. */
export interface Poll {
  urls: FoundUrl[];
  /** Whether it left off before the end. */
  more: boolean;
  /** The problem with a source that can be used all the same; null where there is none. */
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
  const last = readCursor(source.cursor);
  const pass = last.pass ?? beginPass(address, last, poller.now());
  const turn = new Turn(pass, last, poller);
  const conditions = last.pass ? {} : { etag: source.etag, lastModified: source.last_modified };
  if (!(await turn.run(conditions))) {
    return { urls: [], more: false, problem: last.problem, waitMs: null, state: null };
  }
  const { kind, urls, problem, waitMs } = turn;
  if (pass.next < pass.documents.length) {
    const { etag, last_modified } = source;
    return { urls, more: true, problem, waitMs, state: { kind, etag, last_modified, cursor: { ...last, pass } } };
  }
  // Where something is to be read again, the source itself must not say that nothing has changed.
  const [etag, last_modified] = pass.unread.length === 0 ? [pass.etag, pass.lastModified] : [null, null];
  return { urls, more: false, problem, waitMs: null, state: { kind, etag, last_modified, cursor: cursorAfter(pass) } };
}
