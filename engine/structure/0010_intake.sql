-- Which rows the sweep starts

-- How far the sweep has looked for due rows, round and round. Who starts them holds its row.
create table millrace.due_progress (
  pipeline_id int constraint due_progress_pkey primary key
    constraint due_progress_pipeline_fkey references millrace.pipelines on delete cascade,
  lap_at timestamptz,
  lap_key text
) with (fillfactor = 50);
