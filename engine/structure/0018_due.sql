-- A row for each pipeline with a due column: the last due row that the sweep has looked at. lap_at
-- is null where the next look begins at the first row. The sweep locks the row while it starts
-- runs.
create table millrace.due_progress (
  pipeline_id int primary key references millrace.pipelines on delete cascade,
  lap_at timestamptz,
  lap_key text
) with (fillfactor = 50);
