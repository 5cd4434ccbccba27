import { z } from 'zod';

/** Beyond so many sitemaps of one source none is read. */
export const MAX_SITEMAPS = 1000;

const address = z.string().max(2048);
const problem = z.object({ code: z.string(), message: z.string() });
/** What is wrong with a source, as its owner reads it. */
export type Problem = z.output<typeof problem>;

/**
 * What a source keeps between two polls. A pass reads all that a source names; where that is more than one poll may take, the
 * next poll goes on where this one left off.
 */
export const cursorSchema = z.object({
  /** When the last pass without a problem began, ISO 8601: sitemaps that are older need not be read again. */
  since: z.string().nullable().default(null),
  /** The pass under way. */
  pass: z
    .object({
      began: z.string(),
      /** The source's own address and the sitemaps found so far, in the order they are read. */
      documents: z.array(address).min(1).max(MAX_SITEMAPS),
      /** Which of them is read next, and from which place in its text on. */
      next: z.int().min(0),
      at: z.int().min(0),
      etag: z.string().nullable(),
      lastModified: z.string().nullable(),
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
  return read.success ? read.data : { since: null, pass: null };
}

/** A pass over a source, from its beginning. */
export function beginPass(address: string, now: Date): Pass {
  return {
    began: now.toISOString(),
    documents: [address],
    next: 0,
    at: 0,
    etag: null,
    lastModified: null,
    problem: null,
  };
}

/** Says that the document is done with. */
export function nextDocument(pass: Pass): void {
  pass.next++;
  pass.at = 0;
}

/**
 * Adds the sitemaps that an index names: each once, so that indexes that name one another come to an end, and only those that
 * have changed since. Returns false where there are too many.
 */
export function addSitemaps(pass: Pass, found: { url: string; at: string | null }[], since: string | null): boolean {
  const known = new Set(pass.documents);
  for (const { url, at } of found) {
    if (known.has(url) || isOlder(at, since)) continue;
    if (pass.documents.length >= MAX_SITEMAPS) return false;
    known.add(url);
    pass.documents.push(url);
  }
  return true;
}

/** Whether a date is certainly before the other: many name the day alone, in a time zone of their own. */
function isOlder(at: string | null, since: string | null): boolean {
  const twoDays = 2 * 86_400_000;
  return at !== null && since !== null && Date.parse(at) + twoDays < Date.parse(since);
}
