import type pg from 'pg';
import { tags, topics } from '../samples/news/seeds.ts';
import { feedPaths } from '../samples/news/site-feeds.ts';

/** A source as the demo adds it. */
export interface DemoSource {
  name: string;
  address: string;
  /** Whether it is broken on purpose. */
  isBroken: boolean;
}

/** Returns the sample site's feeds and sitemap, and some addresses at which there is none. */
export function sampleSources(site: string): DemoSource[] {
  const broken = ['/broken/page', '/broken/cut.xml', '/broken/busy.xml', '/broken/huge.xml'];
  return [...feedPaths, ...broken].map((path) => ({
    name: path.replace(/^\/(.*?)(\.xml)?$/, '$1'),
    address: site + path,
    isBroken: broken.includes(path),
  }));
}

/** Sources that the user named. */
export function sourcesFor(urls: URL[]): DemoSource[] {
  return urls.map((url) => ({ name: url.hostname, address: url.href, isBroken: false }));
}

/** Inserts the topics and tags by which articles are sorted. */
export async function insertTopics(client: pg.Client): Promise<void> {
  for (const [table, rows] of [
    ['topic', topics],
    ['tag', tags],
  ] as const) {
    await client.query(
      `insert into public.${table} (name, description)
       select r.name, r.description from jsonb_to_recordset($1) r(name text, description text)`,
      [JSON.stringify(rows)],
    );
  }
}

/** Inserts the sources, which are due at once. */
export async function insertSources(client: pg.Client, sources: DemoSource[]): Promise<void> {
  await client.query(
    `insert into public.source (name, address)
     select s.name, s.address from jsonb_to_recordset($1) s(name text, address text)`,
    [JSON.stringify(sources)],
  );
}

/** An article that a person enters by hand: its fields decide at which code it begins. */
export interface ManualEntry {
  says: string;
  values: Record<string, unknown>;
}

const content =
  'The glass jar bank is a shelf in the stairwell. Whoever has empty jars puts them there, washed and without labels, and whoever ' +
  'makes jam takes them. Since the shelf was put up, neighbours have mended its legs twice and painted it once, and gardeners from ' +
  'the courtyard return full what they took empty: beans in brine, tomatoes, and seeds for the spring, each with a name and a date.';

/** One article of each kind that people enter, and one that the queue has already. */
export function manualEntries(site: string): ManualEntry[] {
  const manual = { entry_type: 'manual' };
  return [
    { says: 'an address alone', values: { ...manual, url: `${site}/2026/clothes-swap-mending` } },
    { says: 'its content too', values: { ...manual, title: 'A bank for jars', content } },
    {
      says: 'a summary',
      values: {
        ...manual,
        title: 'Garden walk',
        summary: 'Eleven yards along the canal open their gates on Sunday, with seeds to swap.',
      },
    },
    {
      says: 'all of it',
      values: {
        ...manual,
        title: 'Repair dates in September',
        summary: 'The café, the bicycle kitchen and the wool shop name their evenings.',
        tags: ['community', 'tools'],
        thumbnail_url: `${site}/images/toaster.jpg`,
      },
    },
    {
      says: 'an import with its content',
      values: { entry_type: 'import', title: 'Jars, imported', content: content.replace('jam', 'juice') },
    },
    {
      says: 'an address that is known',
      values: { ...manual, url: `${site}/2026/clothes-swap-mending?utm_source=mail` },
    },
  ];
}

/** Inserts entries one by one. Resolves to each entry with the code at which it begins, and the code's name. */
export async function insertManual(
  client: pg.Client,
  entries: ManualEntry[],
): Promise<(ManualEntry & { code: number; name: string })[]> {
  const inserted: (ManualEntry & { code: number; name: string })[] = [];
  for (const entry of entries) {
    const names = Object.keys(entry.values);
    const { rows } = await client.query<{ code: number; name: string }>(
      `insert into public.ingestion_queue (${names}) values (${names.map((_, at) => `$${at + 1}`)})
       returning status_code as code, (select l.name from public.status_lookup l where l.code = status_code)`,
      Object.values(entry.values),
    );
    inserted.push({ ...entry, code: rows[0]?.code ?? 0, name: rows[0]?.name ?? '' });
  }
  return inserted;
}
