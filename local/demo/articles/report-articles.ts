import type pg from 'pg';
import pc from 'picocolors';
import { causeLines } from '../group-causes.ts';
import { printTable } from '../print-table.ts';
import { wrapText } from '../wrap-text.ts';
import type { DemoSource } from './article-seeds.ts';

type Print = (line: string) => void;

const kinds: Record<string, string> = {
  rss: 'RSS feed',
  rdf: 'RDF feed',
  json: 'JSON feed',
  atom: 'Atom feed',
  sitemap: 'sitemap',
  sitemap_index: 'sitemaps',
};

/** Prints what each source turned out to be and what it brought. Resolves to how many fail that should not. */
export async function printSources(client: pg.Client, sources: DemoSource[], print: Print): Promise<number> {
  const { rows } = await client.query<{ address: string; kind: string | null; found: number; error: string | null }>(
    'select address, kind, found, last_error as error from public.source order by created_at, address',
  );
  printTable(
    [['source'], ['is'], ['articles', 'right']],
    rows
      .filter(({ error }) => error === null)
      .map(({ address, kind, found }) => [address, kinds[kind ?? ''] ?? '–', String(found)]),
    print,
  );
  const broken = new Set(sources.filter(({ isBroken }) => isBroken).map(({ address }) => address));
  const failed = rows.filter(({ error }) => error !== null);
  for (const { address, error } of failed) {
    const note = broken.has(address) ? '(broken on purpose) ' : '';
    const [first = '', ...others] = wrapText(`${address} ${note}${error}`, 88);
    print(`  ${pc.red('✗')} ${first}`);
    for (const line of others) print(`    ${line}`);
  }
  return failed.filter(({ address }) => !broken.has(address)).length;
}

/** Prints the articles that have ended before a review: how many at each code, and why, alike ones together. */
export async function printEnded(client: pg.Client, print: Print): Promise<void> {
  const { rows } = await client.query<{ code: number; name: string; article: string; reason: string | null }>(
    `select q.status_code as code, l.name, coalesce(q.url, q.title) as article,
       case q.status_code when 520 then 'another article has its address or its text'
         when 530 then 'about none of the topics' else coalesce(r.error, l.description) end as reason
     from public.ingestion_queue q
     join public.status_lookup l on l.code = q.status_code
     left join lateral (
       select regexp_replace(a.error ->> 'message', '^https?://[^ ]+: ', '') as error
       from millrace.runs r join millrace.attempts a on a.run_id = r.id
       where r.entity_id = q.id::text and a.state = 'failed' order by a.id desc limit 1) r on true
     where q.status_code between 500 and 539 order by 1, 3`,
  );
  for (const code of new Set(rows.map((row) => row.code))) {
    const ended = rows.filter((row) => row.code === code);
    const lines = causeLines(ended.map(({ article, reason }) => ({ name: article, cause: reason ?? '' })));
    print(`  ${pc.red(`${ended.length} ${ended[0]?.name}`)} ${pc.dim(`(${code})`)}`);
    for (const line of lines) print(line);
  }
  if (rows.length === 0) print('  none');
}

const shownPublications = 3;

/** Prints what is published, the first of it by title. Resolves to how many articles that are. */
export async function printPublications(client: pg.Client, print: Print): Promise<number> {
  const { rows } = await client.query<{ title: string; tags: string[] }>(
    'select title, tags from public.publication order by title',
  );
  for (const { title, tags } of rows.slice(0, shownPublications)) {
    print(`  ${pc.green('›')} ${pc.bold(title)}  ${pc.dim(tags.join(', '))}`);
  }
  const others = rows.length - shownPublications;
  if (others > 0) print(`    and ${others} more: select title, summary, tags from publication;`);
  return rows.length;
}

interface HistoryRow {
  from: string;
  to: string;
  by: string | null;
  ms: string | null;
  changes: Record<string, { old: unknown; new: unknown }> | null;
}

/** Prints how an article entered, what people did with it and when it was published; the agents' codes are left out. */
export async function printHistory(client: pg.Client, id: string, print: Print): Promise<void> {
  const { rows } = await client.query<HistoryRow>(
    `select coalesce(f.code || ' ' || f.name, '') as from, t.code || ' ' || t.name as to,
       h.changed_by as by, h.duration_ms::text as ms, h.changes
     from public.status_history h
     left join public.status_lookup f on f.code = h.from_status
     join public.status_lookup t on t.code = h.to_status
     where h.queue_id = $1 and (h.changed_by like 'user:%' or h.to_status in (100, 400, 410))
     order by h.changed_at, h.duration_ms desc nulls first, t.sort_order`,
    [id],
  );
  printTable(
    [['from'], ['to'], ['by'], ['after', 'right'], ['changed']],
    rows.map(({ from, to, by, ms, changes }) => [
      from,
      to,
      by ?? '',
      ms === null ? '' : `${ms} ms`,
      Object.entries(changes ?? {})
        .map(([field, { new: now }]) => `${field}: ${JSON.stringify(now)}`)
        .join(', '),
    ]),
    print,
  );
}
