import { z } from 'zod';

/** Beyond so many sitemaps or pages of one source none is read. */
export const MAX_SITEMAPS = 1000;
/** Where more of them have to be read again, all are. */
export const MAX_UNREAD = 100;

const address = z.string().max(2048);
const problem = z.object({ code: z.string(), message: z.string() });
/** A problem with a source, as its owner reads it. */
export type Problem = z.output<typeof problem>;

/**
 * The state that a source keeps between two polls. A pass reads all that a source names. A pass that exceeds one poll
 * continues in the next.
 */
export const cursorSchema = z.object({
  /** When the last pass began, ISO 8601: sitemaps that are older need not be read again. */
  since: z.string().nullable().default(null),
  /** The sitemaps that are read again all the same, since something was wrong with them. */
  unread: z.array(address).max(MAX_UNREAD).default([]),
  /** The problem that lasts until the source changes; null where there is none. */
  problem: problem.nullable().default(null),
  /** The pass under way. */
  pass: z
    .object({
      began: z.string(),
      /** The source's own address and the sitemaps or pages found so far, in the order they are read. */
      documents: z.array(address).min(1).max(MAX_SITEMAPS),
      /** Which of them is read next, and from which place in its text on. */
      next: z.int().min(0),
      at: z.int().min(0),
      /** Whether the one that is read now had an address that the queue did not have. */
      fresh: z.boolean().default(false),
      etag: z.string().nullable(),
      lastModified: z.string().nullable(),
      /** Which of them are read whatever their dates, since something was wrong in the last pass. */
      again: z.array(z.int().min(0)).default([]),
      /** Which of them the next pass has to read again. */
      unread: z.array(z.int().min(0)).default([]),
      /** The first thing that went wrong with one of them. */
      problem: problem.nullable(),
    })
    .nullable()
    .default(null),
});

export type Cursor = z.output<typeof cursorSchema>;
export type Pass = NonNullable<Cursor['pass']>;

/** The cursor that a source's row holds; one that nobody can read counts for none. */
export function readCursor(stored: unknown): Cursor {
  const read = cursorSchema.safeParse(stored ?? {});
  return read.success ? read.data : cursorSchema.parse({});
}

/** A pass over a source, from its beginning. */
export function beginPass(address: string, { unread }: Cursor, now: Date): Pass {
  return {
    began: now.toISOString(),
    documents: [address],
    next: 0,
    at: 0,
    fresh: false,
    etag: null,
    lastModified: null,
    again: unread.includes(address) ? [0] : [],
    unread: [],
    problem: null,
  };
}

/** Notes what is wrong with the document that is read now, which is read again with the next pass. */
export function noteUnread(pass: Pass, found: Problem): void {
  pass.problem ??= found;
  if (pass.unread.at(-1) !== pass.next) pass.unread.push(pass.next);
}

/** The state that a source keeps after a pass. */
export function cursorAfter({ began, documents, unread, problem }: Pass): Cursor {
  // A lasting problem is reported until the source changes.
  const kept = unread.length === 0 ? problem : null;
  // Where some were left out, or too many to keep are to be read again, the next pass reads all it can.
  if (documents.length >= MAX_SITEMAPS || unread.length > MAX_UNREAD) {
    return { since: null, unread: [], problem: kept, pass: null };
  }
  return { since: began, unread: unread.map((place) => documents[place] as string), problem: kept, pass: null };
}

/** Says that the document is done with. */
export function nextDocument(pass: Pass): void {
  pass.next++;
  pass.at = 0;
  pass.fresh = false;
}

/**
 * Adds the sitemaps that an index names: each once, so that indexes that name one another come to an end, and only those that
 * have changed since the last pass or have to be read again, as all have that an index names which could not be read then.
 * Returns false where there are too many.
 */
export function addSitemaps(pass: Pass, found: { url: string; at: string | null }[], last: Cursor): boolean {
  const known = new Set(pass.documents);
  const isAgain = pass.again.includes(pass.next);
  for (const { url, at } of found) {
    const again = isAgain || last.unread.includes(url);
    if (known.has(url) || (!again && isOlder(at, last.since))) continue;
    if (pass.documents.length >= MAX_SITEMAPS) return false;
    known.add(url);
    if (again) pass.again.push(pass.documents.length);
    pass.documents.push(url);
  }
  return true;
}

/**
 * Adds the next page of the feed that has been read to its end. Pages go back in time: so after the first pass that of a page
 * without anything new is read only where something was wrong in the last pass. A page that is known ends a circle. Returns
 * false where there are too many.
 */
export function addPage(pass: Pass, url: string, last: Cursor): boolean {
  const isWanted = pass.fresh || last.since === null || last.unread.length > 0;
  if (!isWanted || pass.documents.includes(url)) return true;
  if (pass.documents.length >= MAX_SITEMAPS) return false;
  // An unchanged page may still lead to one that has not been read.
  pass.again.push(pass.documents.length);
  pass.documents.push(url);
  return true;
}

/** Whether a date is certainly before the other: many name the day alone, in a time zone of their own. */
function isOlder(at: string | null, since: string | null): boolean {
  const twoDays = 2 * 86_400_000;
  return at !== null && since !== null && Date.parse(at) + twoDays < Date.parse(since);
}
