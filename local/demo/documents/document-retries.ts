import type pg from 'pg';

/** Attempts that failed for the same reason at about the same time, and are tried again. */
export interface Retry {
  /** The document's name. */
  name: string;
  stage: string;
  /** How many of the document's chunks it is about; 0 where it is about the document itself. */
  chunks: number;
  error: string;
  /** Seconds from the failure to the first next try. */
  seconds: number;
}

const longest = 110;

/** Reads the retries there are whose attempts are not in `seen`, to which it adds them. */
export async function readNewRetries(client: pg.Client, seen: Set<string>): Promise<Retry[]> {
  const { rows } = await client.query<Retry & { ids: string[] }>(
    `select array_agg(n.id::text) as ids, d.metadata ->> 'source_name' as name, s.name as stage,
       count(*) filter (where r.fan_out_id is not null)::int as chunks, coalesce(p.error ->> 'message', 'no error given') as error,
       coalesce(extract(epoch from min(n.queue_at - n.created_at)), 0)::float as seconds
     from millrace.attempts n join millrace.attempts p on p.id = n.parent_id
     join millrace.runs r on r.id = n.run_id join millrace.stages s on s.id = n.stage_id
     left join millrace.fan_outs f on f.id = r.fan_out_id left join millrace.runs o on o.id = f.run_id
     join public.document d on d.id::text = coalesce(o.entity_id, r.entity_id)
     where p.state = 'failed' and n.id <> all ($1::bigint[])
     group by d.id, s.id, r.fan_out_id, p.error ->> 'message' order by min(n.id)`,
    [[...seen]],
  );
  for (const { ids } of rows) for (const id of ids) seen.add(id);
  return rows;
}

/** Returns a retry as one line: which phase, when it is tried again, and why it failed, shortened. */
export function describeRetry({ stage, chunks, error, seconds }: Retry): string {
  const what = chunks === 0 ? stage : `${stage} of ${chunks} ${chunks === 1 ? 'chunk' : 'chunks'}`;
  const why = error.replace(/\s+/g, ' ').trim();
  const short = why.length > longest ? `${why.slice(0, longest).trimEnd()}…` : why;
  return `${what} failed, tried again in ${Math.max(1, Math.round(seconds))} s: ${short}`;
}
