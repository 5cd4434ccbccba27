import type pg from 'pg';
import { documents as pipeline } from '../../../supabase/functions/_pipelines/documents.ts';

const phases = Object.keys(pipeline.stages);

/** How many of a phase's chunks have been read for facts, how many could not be, and how many there are. */
export interface ChunkCounts {
  done: number;
  failed: number;
  all: number;
}

/** Where a document stands. */
export interface DocumentProgress {
  name: string;
  /** By phase, in the order of the pipeline's definition. */
  statuses: Record<string, string>;
  /** By phase that has chunks; before it has any, nothing. */
  chunks: Record<string, ChunkCounts>;
  /** Of the old way, which does everything in one call; null where the document goes the new one. */
  monolith: string | null;
}

interface Row {
  name: string;
  statuses: Record<string, string>;
  chunks: Record<string, ChunkCounts> | null;
  monolith_status: string;
}

/** Reads where all documents stand. Counts running work first, so that a count of none means that nothing runs any more. */
export async function readDocumentProgress(
  client: pg.Client,
): Promise<{ running: number; documents: DocumentProgress[] }> {
  const counted = await client.query<{ running: number }>(
    "select count(*)::int as running from millrace.runs where status = 'running'",
  );
  const { rows } = await client.query<Row>(
    `select d.metadata ->> 'source_name' as name, d.monolith_status, children.chunks,
       (select json_object_agg(p.phase, coalesce(to_jsonb(d) ->> (p.phase || '_status'), 'pending') order by p.place)
        from unnest($1::text[]) with ordinality p (phase, place)) as statuses
     from public.document d
     left join lateral (
       select json_object_agg(latest.name, c.counts) filter (where c.counts is not null) as chunks
       from (
         select distinct on (s.name) f.id, s.name
         from millrace.fan_outs f join millrace.runs r on r.id = f.run_id join millrace.stages s on s.id = f.stage_id
         where r.entity_id = d.id::text order by s.name, f.id desc
       ) latest
       cross join lateral (
         select case when count(*) > 0 then json_build_object('all', count(*), 'done', count(*) filter (where c.status = 'completed'),
           'failed', count(*) filter (where c.status in ('failed', 'cancelled'))) end as counts
         from millrace.runs c where c.fan_out_id = latest.id
       ) c
     ) children on true
     order by d.created_at, d.id`,
    [phases],
  );
  const documents = rows.map(({ name, statuses, chunks, monolith_status: monolith }) => ({
    name,
    statuses,
    chunks: chunks ?? {},
    monolith: monolith === 'pending' ? null : monolith,
  }));
  return { running: counted.rows[0]?.running ?? 0, documents };
}
