// The stamps by which migrations are ordered. None lies in the future: migrations written until then would be older,
// and `supabase db push` refuses a migration that is older than the newest in the database.
import { setTimeout } from 'node:timers/promises';

const second = 1000;

/**
 * `count` stamps in their order, after those of `names` and none later than now; waits until so many seconds have passed
 * since the newest. Throws an error that names the migration which is stamped in the future.
 *
 * @example
 * const [stamp] = await stampsAfter(fs.readdirSync('supabase/migrations'), 1); // '20261123201500'
 */
export async function stampsAfter(names: string[], count: number): Promise<string[]> {
  const [fault] = futureStamps(names, Date.now());
  if (fault) throw new Error(fault);
  const newest = Math.max(0, ...names.map(momentOf));
  const wait = newest + count * second - Date.now();
  if (wait > 0) await setTimeout(wait);
  const last = Math.floor(Date.now() / second) * second;
  return Array.from({ length: count }, (_, at) => stampOf(last - (count - 1 - at) * second));
}

/** A migration that has no stamp yet. */
export interface Unstamped {
  name: string;
  text: string;
}

/**
 * Resolves to migrations as files of a project, stamped as by `stampsAfter(names)`.
 *
 * @param first The stamp of the first one, where it must lie before others.
 */
export async function stampAll(names: string[], lacking: Unstamped[], first?: string) {
  const stamps = lacking.length > 0 ? await stampsAfter(names, lacking.length) : [];
  if (first) stamps[0] = first;
  return lacking.map(({ name, text }, at) => ({ file: `supabase/migrations/${stamps[at]}_${name}`, text }));
}

/** Returns a sentence, with the remedy, for each migration among `names` whose stamp is later than `now`, in milliseconds. */
export function futureStamps(names: string[], now: number): string[] {
  return names
    .filter((name) => momentOf(name) > now)
    .map(
      (name) =>
        `supabase/migrations/${name} is stamped in the future (UTC), and what is written until then would be older, which ` +
        '`supabase db push` refuses: rename it to a moment that has passed, keeping the order.',
    );
}

/** Returns the stamp right after that of a migration. */
export const stampAfter = (name: string) => stampOf(momentOf(name) + second);

/** Returns the stamp right before that of a migration. */
export const stampBefore = (name: string) => stampOf(momentOf(name) - second);

const stampOf = (moment: number) => new Date(moment).toISOString().replace(/\D/g, '').slice(0, 14);

/** Returns when a migration is stamped, in milliseconds; 0 for a name without a stamp. */
function momentOf(name: string): number {
  const [, year = '', month = '', day = '', hour = '', minute = '', seconds = ''] =
    name.match(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)_/) ?? [];
  return year === '' ? 0 : Date.UTC(+year, +month - 1, +day, +hour, +minute, +seconds);
}
