import type pg from 'pg';
import pc from 'picocolors';
import { documents as pipeline } from '../../../supabase/functions/_pipelines/documents.ts';
import { dollars } from '../print-costs.ts';
import { printTable } from '../print-table.ts';
import { shorten } from '../shorten.ts';
import { wrapText } from '../wrap-text.ts';

type Print = (line: string) => void;

const phases = Object.keys(pipeline.stages);
const columns = Math.min(process.stdout.columns ?? 92, 92);

/** The outcome of a document. */
export interface FinishedDocument {
  id: string;
  name: string;
  status: string;
  phase: string;
  /** Where its text comes from; null when there is none. */
  by: string | null;
  pages: number | null;
  duration_seconds: number | null;
  chunks: number;
  entities: number;
  facts: number;
  cost_usd: number | null;
  seconds: number | null;
  error: string | null;
  /** The failed run, where trying again may help because the file is not to blame. */
  retry: string | null;
}

/** Reads what came of all documents, in the order of their upload. */
export async function readFinishedDocuments(client: pg.Client): Promise<FinishedDocument[]> {
  const { rows } = await client.query<FinishedDocument>(
    `select d.id, d.metadata ->> 'source_name' as name, j.status, j.current_phase as phase,
       text.result ->> 'by' as by, (text.result ->> 'pages')::int as pages,
       (text.result ->> 'duration_seconds')::float as duration_seconds,
       (select count(*) from public.chunk c where c.document_id = d.id)::int as chunks,
       (select count(distinct m.entity_id) from public.chunk c join public.kg_mention m on m.chunk_id = c.id
        where c.document_id = d.id)::int as entities,
       (select count(*) from public.chunk c join public.kg_edge e on e.chunk_id = c.id where c.document_id = d.id)::int as facts,
       (j.metadata ->> 'total_cost_usd')::float as cost_usd,
       extract(epoch from j.completed_at - j.created_at)::float as seconds,
       (select to_jsonb(d) ->> (p.phase || '_error') from unnest($1::text[] || array['monolith']) with ordinality p (phase, place)
        where to_jsonb(d) ->> (p.phase || '_error') is not null order by p.place limit 1) as error,
       (select j.run_id::text from millrace.dead_letters l join millrace.attempts a on a.id = l.attempt_id
        left join millrace.runs c on c.id = l.run_id left join millrace.fan_outs f on f.id = c.fan_out_id
        where j.run_id in (l.run_id, f.run_id) and not coalesce((a.error ->> 'permanent')::boolean, false) limit 1) as retry
     from public.document d
     join public.pipeline_job j on j.document_id = d.id
     cross join lateral (select coalesce(d.extraction_result, d.monolith_result) as result) text
     order by d.created_at, d.id`,
    [phases],
  );
  return rows;
}

/** Prints the result of each completed document. */
export function printDocuments(documents: FinishedDocument[], print: Print): void {
  const completed = documents.filter(({ status }) => status === 'completed');
  if (completed.length === 0) {
    print('  none');
    return;
  }
  printTable(
    [
      ['document'],
      ['read as'],
      ['chunks', 'right'],
      ['entities', 'right'],
      ['facts', 'right'],
      ['cost', 'right'],
      ['time', 'right'],
    ],
    completed.map((document) => [
      shorten(document.name),
      readAs(document),
      String(document.chunks),
      String(document.entities),
      String(document.facts),
      dollars(document.cost_usd),
      `${(document.seconds ?? 0).toFixed(1)} s`,
    ]),
    print,
  );
}

function readAs({ by, pages, duration_seconds: seconds }: FinishedDocument): string {
  const extent = [
    pages === null ? '' : `${pages} ${pages === 1 ? 'page' : 'pages'}`,
    seconds === null ? '' : `${seconds.toFixed(0)} s`,
  ].filter(Boolean);
  return [(by ?? '').replace('_', ' '), ...extent].join(', ');
}

/** A document that did not complete. `phase` is upload where its run did not even begin. */
export type UnfinishedDocument = Pick<FinishedDocument, 'name' | 'phase' | 'status' | 'error' | 'retry'>;

/** Prints the documents that did not complete and how to try again; marks those that were meant to fail. */
export function printFailedDocuments(
  failed: UnfinishedDocument[],
  expected: ReadonlySet<string>,
  staysUp: boolean,
  print: Print,
): void {
  for (const { name, phase, status, error, retry } of failed) {
    print(`  ${pc.red('✗')} ${name}${expected.has(name) ? pc.dim('  (broken on purpose)') : ''}`);
    const why = error ?? (status === 'failed' ? 'no error given' : `still ${status}`);
    for (const line of wrapText(`${phase}: ${why}`, columns - 6)) print(`      ${line}`);
    if (retry !== null) print(`      ${pc.dim('try again:')} ${pc.cyan(`select millrace.retry(${retry});`)}`);
  }
  if (failed.every(({ retry }) => retry === null)) return;
  print(pc.dim('  millrace.retry() goes on from what failed, once its cause is mended; what was done is kept.'));
  if (!staysUp)
    print(pc.dim('  This stack ends with the demo: with --keep it stays up, for statements such as these.'));
}

interface EntityRow {
  id: string;
  organisation: string;
  name: string;
  type: string;
  documents: string[];
  count: number;
}

/** Prints the entities of each organisation that most of its documents name, each with a fact from some of these. */
export async function printEntities(client: pg.Client, print: Print): Promise<void> {
  const { rows } = await client.query<EntityRow>(
    `select id, organisation, name, type, documents, count from (
       select e.id, e.clerk_org_id as organisation, e.name, e.type,
         array_agg(distinct d.metadata ->> 'source_name') as documents, count(distinct d.id)::int as count,
         row_number() over (partition by e.clerk_org_id order by count(distinct d.id) desc, count(*) desc, e.name) as place,
         (select count(*) from public.document o where o.clerk_org_id = e.clerk_org_id) as size
       from public.kg_entity e join public.kg_mention m on m.entity_id = e.id
       join public.chunk c on c.id = m.chunk_id join public.document d on d.id = c.document_id
       group by e.id
     ) ranked where place <= 4 order by size desc, organisation, count desc, place`,
  );
  if (rows.length === 0) print('  none');
  let organisation = '';
  for (const entity of rows) {
    if (entity.organisation !== organisation) print(`  ${pc.dim(`of ${entity.organisation}`)}`);
    organisation = entity.organisation;
    const type = entity.type === 'other' ? '' : `, ${entity.type}`;
    const where = `in ${entity.count} ${entity.count === 1 ? 'document' : 'documents'}: ${entity.documents.join(', ')}`;
    print(`  ${pc.bold(entity.name)}${type}`);
    for (const line of wrapText(where, columns - 6)) print(pc.dim(`      ${line}`));
    for (const { fact, name } of await readFactsOf(entity.id, client)) {
      const [first = '', ...rest] = wrapText(`${fact} [${name}]`, columns - 8);
      print(`      – ${first}`);
      for (const line of rest) print(`        ${line}`);
    }
  }
}

/** Facts about an entity, one from each of three documents. */
async function readFactsOf(entityId: string, client: pg.Client): Promise<{ fact: string; name: string }[]> {
  const { rows } = await client.query<{ fact: string; name: string }>(
    `select fact, name from (
       select distinct on (d.id) d.id, d.created_at, e.fact, d.metadata ->> 'source_name' as name
       from public.kg_edge e join public.chunk c on c.id = e.chunk_id join public.document d on d.id = c.document_id
       where $1 in (e.source_id, e.target_id) order by d.id, c.ordinal, e.fact
     ) facts order by created_at, id limit 3`,
    [entityId],
  );
  return rows;
}

/** Prints the first rows of pipeline_job as they are. */
export async function printJobs(client: pg.Client, print: Print): Promise<void> {
  const { rows } = await client.query<Record<string, string> & { all: string }>(
    `select count(*) over () as all, metadata ->> 'source_name' as source_name, pipeline, current_phase, status,
       metadata ->> 'total_cost_usd' as total_cost_usd, to_char(completed_at, 'HH24:MI:SS') as completed_at
     from public.pipeline_job order by created_at, metadata ->> 'source_name' limit 8`,
  );
  const names = ['source_name', 'pipeline', 'current_phase', 'status', 'total_cost_usd', 'completed_at'];
  printTable(
    names.map((name) => [name]),
    rows.map((row) => names.map((name) => shorten(row[name] ?? ''))),
    print,
  );
  const all = Number(rows[0]?.all ?? 0);
  if (all > rows.length) print(pc.dim(`  the first ${rows.length} of ${all}`));
}
