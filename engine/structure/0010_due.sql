-- How far the sweep has looked for due rows, round and round. Who starts them holds its row.
create table millrace.due_progress (
  pipeline_id int primary key references millrace.pipelines on delete cascade,
  lap_at timestamptz,
  lap_key text
) with (fillfactor = 50);
