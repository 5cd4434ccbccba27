-- Which rows the sweep starts, and how rows that were there before come to a status.

-- How far the sweep has looked for rows that are due: once at each as it becomes due, and round and
-- round at those that were passed over. Whoever starts due runs of a pipeline holds its row.
create table millrace.due_progress (
  pipeline_id int constraint due_progress_pkey primary key
    constraint due_progress_pipeline_fkey references millrace.pipelines on delete cascade,
  seen_until timestamptz not null,
  lap_at timestamptz,
  lap_key text
) with (fillfactor = 50);

-- How far rows that were there before a pipeline have been given values of its status column.
-- last_key: up to which key.
create table millrace.adoptions (
  pipeline_id int constraint adoptions_pkey primary key
    constraint adoptions_pipeline_fkey references millrace.pipelines on delete cascade,
  last_key text
);
