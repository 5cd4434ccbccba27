-- Former runs: what is kept of a row's runs once they are pruned

create table millrace.former_runs (
  pipeline_id int not null
    constraint former_runs_pipeline_fkey references millrace.pipelines on delete cascade,
  entity_id text not null,
  run_id bigint not null,
  trace_id uuid,
  status millrace.run_status not null,
  metadata jsonb,
  costs jsonb not null,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  constraint former_runs_pkey primary key (pipeline_id, entity_id)
);
comment on table millrace.former_runs is
  'One row for each entity whose runs were pruned: the last of these, and what all of them cost, '
  'by stage in US dollars. It goes with the entity.';
