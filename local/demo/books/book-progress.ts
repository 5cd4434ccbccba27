import type pg from 'pg';
import { books } from '../../../supabase/functions/_pipelines/books.ts';
import { pages } from '../../../supabase/functions/_pipelines/pages.ts';
import { toc } from '../../../supabase/functions/_pipelines/toc.ts';

export const pageStages = Object.keys(pages.stages);
export const bookStages = Object.keys(books.stages);
const tocStages = Object.keys(toc.stages);

/** Where a book stands. */
export interface BookProgress {
  running: number;
  waitsForPerson: boolean;
  pages: number;
  /** By stage of a page: how many pages are queued, started, completed, skipped, failed. */
  pageCounts: Record<string, Record<string, number>>;
  /** By stage of the book: its status. */
  statuses: Record<string, string>;
  /** By stage of the table of contents: the state of its last attempt. */
  contents: Record<string, string>;
}

/** Reads where a book stands. Counts running work first, so that a count of none means that nothing runs any more. */
export async function readBookProgress(client: pg.Client, bookId: string): Promise<BookProgress> {
  const running = await client.query<{ running: number; waiting: number }>(
    `select (select count(*) from millrace.runs where status = 'running')::int as running,
       (select count(*) from public.millrace_decisions where closed_at is null)::int as waiting`,
  );
  const counted = await client.query<{ stage: string; status: string; n: number }>(
    `select s.stage, to_jsonb(p) ->> (s.stage || '_status') as status, count(*)::int as n
     from public.pages p cross join unnest($2::text[]) s(stage) where p.book_id = $1 group by 1, 2`,
    [bookId, pageStages],
  );
  const stages = await client.query<{ stage: string; status: string }>(
    `select s.stage, to_jsonb(b) ->> (s.stage || '_status') as status
     from public.books b cross join unnest($2::text[]) s(stage) where b.id = $1`,
    [bookId, bookStages],
  );
  const contents = await client.query<{ stage: string; state: string }>(
    `select distinct on (s.name) s.name as stage, a.state::text as state
     from millrace.runs r join millrace.attempts a on a.run_id = r.id
     join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id
     where r.entity_id = $1 and p.name = 'toc' order by s.name, a.id desc`,
    [bookId],
  );
  const pageCounts: BookProgress['pageCounts'] = Object.fromEntries(pageStages.map((stage) => [stage, {}]));
  for (const { stage, status, n } of counted.rows) pageCounts[stage] = { ...pageCounts[stage], [status]: n };
  return {
    running: running.rows[0]?.running ?? 0,
    waitsForPerson: (running.rows[0]?.waiting ?? 0) > 0,
    pages: Object.values(pageCounts[pageStages[0] ?? ''] ?? {}).reduce((sum, n) => sum + n, 0),
    pageCounts,
    statuses: Object.fromEntries(stages.rows.map(({ stage, status }) => [stage, status])),
    contents: Object.fromEntries(
      tocStages.flatMap((stage) => {
        const found = contents.rows.find((row) => row.stage === stage);
        return found ? [[stage, found.state]] : [];
      }),
    ),
  };
}
