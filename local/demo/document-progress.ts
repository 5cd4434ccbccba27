import type pg from 'pg';

export const phases = ['extraction', 'chunking', 'kg_ingest'] as const;
export type Phase = (typeof phases)[number];

/** Where a document stands. */
export interface DocumentProgress {
  name: string;
  statuses: Record<Phase, string>;
  /** How many of its chunks have been read for facts, of how many; null before it has any. */
  chunks: { done: number; all: number } | null;
  /** Of the old way, which does everything in one call; null where the document goes the new one. */
  monolith: string | null;
}

/** Reads where all documents stand. What runs is counted first, so that nothing runs any more where it says so. */
export async function readDocumentProgress(
  client: pg.Client,
): Promise<{ running: number; documents: DocumentProgress[] }> {
  const counted = await client.query<{ running: number }>(
    "select count(*)::int as running from pipeline.runs where status = 'running'",
  );
  const { rows } = await client.query<Record<`${Phase | 'monolith'}_status` | 'name', string> & Children>(
    `select d.metadata ->> 'source_name' as name, d.extraction_status, d.chunking_status, d.kg_ingest_status, d.monolith_status,
       children.done, children.of
     from public.document d
     left join lateral (
       select f.id from pipeline.fan_outs f join pipeline.runs r on r.id = f.run_id
       where r.entity_id = d.id::text order by f.id desc limit 1
     ) latest on true
     left join lateral (
       select count(*)::int as of, (count(*) filter (where c.status <> 'running'))::int as done
       from pipeline.runs c where c.fan_out_id = latest.id
     ) children on true
     order by d.created_at, d.id`,
  );
  const documents = rows.map((row) => ({
    name: row.name,
    statuses: { extraction: row.extraction_status, chunking: row.chunking_status, kg_ingest: row.kg_ingest_status },
    chunks: row.of > 0 ? { done: row.done, all: row.of } : null,
    monolith: row.monolith_status === 'pending' ? null : row.monolith_status,
  }));
  return { running: counted.rows[0]?.running ?? 0, documents };
}

interface Children {
  done: number;
  of: number;
}
