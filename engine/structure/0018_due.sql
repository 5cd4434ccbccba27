-- How far the sweep has looked for due rows: one row a pipeline. No lap_at: the next look begins at
-- the first row. A sweep locks the row while it starts runs.
create table millrace.due_progress (
  pipeline_id int primary key references millrace.pipelines on delete cascade,
  lap_at timestamptz,
  lap_key text
) with (fillfactor = 50);
