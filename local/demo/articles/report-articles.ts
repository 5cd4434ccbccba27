import type pg from 'pg';
import pc from 'picocolors';
import { printTable } from '../print-table.ts';
import { shorten } from '../shorten.ts';
import { wrapText } from '../wrap-text.ts';
import type { DemoSource } from './article-seeds.ts';

type Print = (line: string) => void;

/** Prints what each source turned out to be and what it brought. Resolves to how many fail that should not. */
export async function printSources(client: pg.Client, sources: DemoSource[], print: Print): Promise<number> {
  const { rows } = await client.query<{
    address: string;
    name: string;
    kind: string | null;
    found: number;
    error: string | null;
  }>('select address, name, kind, found, last_error as error from public.source order by created_at, address');
  printTable(
    [['source'], ['kind'], ['found', 'right']],
    rows.map(({ name, kind, found }) => [shorten(name), kind ?? '', String(found)]),
    print,
  );
  const broken = new Set(sources.filter(({ isBroken }) => isBroken).map(({ address }) => address));
  const failed = rows.filter(({ error }) => error !== null);
  for (const { name, address, error } of failed) {
    print(`  ${pc.red('✗')} ${name}${broken.has(address) ? pc.dim('  (broken on purpose)') : ''}`);
    for (const line of wrapText(error ?? '', 86)) print(`      ${line}`);
  }
  return failed.filter(({ address }) => !broken.has(address)).length;
}

/** Prints the articles that have ended before a review, by code, with the reason where there is one. */
export async function printEnded(client: pg.Client, print: Print): Promise<void> {
  const { rows } = await client.query<{ code: number; name: string; article: string; reason: string | null }>(
    `select q.status_code as code, l.name, coalesce(q.url, q.title) as article,
       coalesce('as ' || coalesce(o.url, o.title), case when q.status_code = 530 then 'score ' || round(q.score::numeric, 2) end, r.error) as reason
     from public.ingestion_queue q
     join public.status_lookup l on l.code = q.status_code
     left join public.ingestion_queue o on o.id = q.duplicate_of
     left join lateral (
       select a.error ->> 'message' as error from millrace.runs r join millrace.attempts a on a.run_id = r.id
       where r.entity_id = q.id::text and a.state = 'failed' order by a.id desc limit 1) r on true
     where q.status_code between 500 and 539 order by 1, 3`,
  );
  for (const { code, name, article, reason } of rows) {
    print(`  ${pc.red(String(code))} ${name.padEnd(12)} ${article}`);
    for (const line of wrapText(reason ?? '', 80).filter(Boolean)) print(pc.dim(`      ${line}`));
  }
}

/** Prints what is published. Resolves to how many articles that are. */
export async function printPublications(client: pg.Client, print: Print): Promise<number> {
  const { rows } = await client.query<{ title: string; summary: string | null; tags: string[] }>(
    'select title, summary, tags from public.publication order by title',
  );
  for (const { title, summary, tags } of rows) {
    print(`  ${pc.green('›')} ${pc.bold(title)}  ${pc.dim(tags.join(', '))}`);
    for (const line of wrapText(summary ?? '', 86).slice(0, 2)) print(`      ${line}`);
  }
  return rows.length;
}

interface HistoryRow {
  from: string;
  to: string;
  by: string | null;
  ms: string | null;
  changes: Record<string, { old: unknown; new: unknown }> | null;
}

/** Prints every code that an article had: who, after how long, and which fields were changed. */
export async function printHistory(client: pg.Client, id: string, print: Print): Promise<void> {
  const { rows } = await client.query<HistoryRow>(
    `select coalesce(f.code || ' ' || f.name, '') as from, t.code || ' ' || t.name as to,
       h.changed_by as by, h.duration_ms::text as ms, h.changes
     from public.status_history h
     left join public.status_lookup f on f.code = h.from_status
     join public.status_lookup t on t.code = h.to_status
     where h.queue_id = $1 order by h.changed_at, h.duration_ms desc nulls first, t.sort_order`,
    [id],
  );
  printTable(
    [['from'], ['to'], ['by'], ['after', 'right'], ['changed']],
    rows.map(({ from, to, by, ms, changes }) => [
      from,
      to,
      by ?? '',
      ms === null ? '' : `${ms} ms`,
      Object.keys(changes ?? {}).join(', '),
    ]),
    print,
  );
  for (const [field, { old, new: now }] of rows.flatMap(({ changes }) => Object.entries(changes ?? {}))) {
    print(`  ${field}: ${pc.dim(JSON.stringify(old))} → ${JSON.stringify(now)}`);
  }
}
