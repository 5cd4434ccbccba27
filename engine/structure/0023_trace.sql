-- Traces: one trace id for all runs of a row

alter table millrace.pipelines add column trace_column text;
comment on column millrace.pipelines.trace_column is
  'A uuid column of the entity, whose value is the trace id of all its runs; null where each run '
  'has one of its own.';
