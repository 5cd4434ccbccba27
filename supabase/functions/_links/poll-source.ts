import { storableText } from '../_millrace/mod.ts';
import type { BrokenCells, SourceLink } from '../_services/text-links.ts';
import type { ReadOn } from './source-reader.ts';

/** Bounds of one poll, within a worker's limits; the next poll takes the rest. */
export interface PollLimits {
  /** How many requests it makes. */
  reads: number;
  /** How many links it takes in. */
  links: number;
  /** After so long it asks no more. */
  ms: number;
}

/** The result of saving a portion. */
export interface Saved {
  /** False where another poll has read on meanwhile, or the source is gone. */
  saved: boolean;
  found: number;
  /** Place of a link that is too long; null where there is none. */
  too_long: string | null;
}

/** Takes in links, and keeps where the next read goes on. */
export type Save = (links: SourceLink[], before: unknown, cursor: unknown) => Promise<Saved>;

export interface Poll {
  found: number;
  /** Whether the source goes on. */
  more: boolean;
  /** Place of a link that was too long and left out; null where there is none. */
  tooLong: string | null;
  /** Cells that show an error in the place of a link. */
  broken: BrokenCells | null;
}

/** So many links are worth a call of their own. */
const portion = 1000;
/** So many are saved by one call at most: Postgres ends what takes longer than a few seconds. */
const mostSaved = 10_000;

/** Reads a source from `cursor` on until its pass or what a poll may do is at its end, and saves on the way. */
export async function pollSource(cursor: unknown, read: ReadOn, save: Save, limits: PollLimits): Promise<Poll> {
  const began = Date.now();
  const poll: Poll = { found: 0, more: true, tooLong: null, broken: null };
  let taken = 0;
  let before = cursor;
  let at = cursor;
  let links: SourceLink[] = [];
  for (let reads = 1; poll.more; reads++) {
    const got = await read(at);
    for (const { url, place } of got.links) links.push({ url: storableText(url), place: storableText(place) });
    if (got.broken)
      poll.broken = { ...(poll.broken ?? got.broken), count: (poll.broken?.count ?? 0) + got.broken.count };
    taken += got.links.length;
    at = got.cursor;
    poll.more = got.more;
    const isOver = reads >= limits.reads || taken >= limits.links || Date.now() - began > limits.ms;
    if (!isOver && poll.more && links.length < portion) continue;
    const { saved, found, too_long } = await saveAll(links, before, at, save);
    // The poll that read on meanwhile may have ended since: the next poll continues from its cursor.
    if (!saved) return { ...poll, more: true };
    poll.found += found;
    poll.tooLong ??= too_long;
    before = at;
    links = [];
    if (isOver) break;
  }
  return poll;
}

/** Saves links by calls of a bounded size. Where the next read goes on is kept with the last. */
async function saveAll(links: SourceLink[], before: unknown, at: unknown, save: Save): Promise<Saved> {
  const all: Saved = { saved: true, found: 0, too_long: null };
  for (let from = 0; all.saved && (from === 0 || from < links.length); from += mostSaved) {
    const isLast = from + mostSaved >= links.length;
    const { saved, found, too_long } = await save(links.slice(from, from + mostSaved), before, isLast ? at : before);
    all.saved = saved;
    all.found += found;
    all.too_long ??= too_long;
  }
  return all;
}
