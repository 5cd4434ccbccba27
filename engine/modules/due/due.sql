-- Due: the sweep starts a run of a row whose due column is past, unless the row has a live run.
-- While nobody changes the column, the next run begins at the earliest a minute after the last one
-- began.

-- Starts up to p_limit due runs of a pipeline. Returns how many. Each call looks at the next 5,000
-- rows that are past due, and begins anew at the end. Locks the pipeline's row of due_progress, so
-- that no other sweep does the same.
create function millrace.start_due_runs(p_pipeline_id int, p_limit int) returns int
as $$
  v_look constant int := 5000;
  v_pipeline millrace.pipelines := (
    select p from millrace.pipelines p where p.id = p_pipeline_id);
  v_progress millrace.due_progress;
  v_key text;
  v_due timestamptz;
  v_looked int := 0;
  v_keys text[] := '{}';
  v_found boolean;
  v_started record;

execute format('select exists (select from %s e where e.%I <= $1)', v_pipeline.entity_table,
  v_pipeline.due_column)
into v_found
using v_now;
if not v_found then
  return 0;
end if;
-- Locks the table before the progress, as define() does.
execute format('lock table %s in row exclusive mode', v_pipeline.entity_table);
select d.* into v_progress
from millrace.due_progress d
where d.pipeline_id = p_pipeline_id
for update skip locked;
if not found then
  return 0;
end if;
for v_key, v_due in execute format(
  'select e.%2$I::text as key, e.%1$I as due from %3$s e where e.%1$I <= $1 ' || case
    when v_progress.lap_at is not null then 'and (e.%1$I, e.%2$I) > ($2, $3::%4$s) ' else ''
  end || 'order by e.%1$I, e.%2$I limit $4',
  v_pipeline.due_column, v_pipeline.entity_key, v_pipeline.entity_table,
  millrace.key_type(v_pipeline))
using v_now, v_progress.lap_at, v_progress.lap_key, v_look
loop
  v_looked := v_looked + 1;
  if millrace.may_start_again(p_pipeline_id, v_key, v_due) then
    v_keys := v_keys || v_key;
  end if;
  exit when cardinality(v_keys) = p_limit;
end loop;
update millrace.due_progress d
set (lap_at, lap_key) = (
  select v_due, v_key where v_looked = v_look or cardinality(v_keys) = p_limit)
where d.pipeline_id = p_pipeline_id;
v_started := millrace.in_halves(
  millrace.lock_due(v_pipeline, v_keys),
  format('select cardinality($1) from millrace.queue_stage(%s, %s, $1, $1, ''due'')',
    p_pipeline_id, millrace.first_stage(p_pipeline_id)),
  clock_timestamp() + interval '2 seconds');
perform millrace.report('error', 'due_not_started', format(
  'Row %s of pipeline %s is due, but no run can start%s: %s', f.key, v_pipeline.name,
  case when f.others > 0 then ', nor for ' || f.others || ' more' end, f.why))
from unnest(v_started.refused) f;
return v_started.done;
$$;

-- Tells whether a row has no live run, and its last run began before p_due or over a minute ago.
create function millrace.may_start_again(p_pipeline_id int, p_key text, p_due timestamptz)
returns boolean
as $$
return not exists (
  select from (
    select r.status, r.created_at
    from millrace.runs r
    where r.entity_id = any (array[p_key])
      and r.pipeline_id = p_pipeline_id
    order by r.entity_id desc, r.id desc
    limit 1) l
  where l.status = 'running'
    or l.created_at >= p_due
      and abs(extract(epoch from v_now - l.created_at)) < 60);
$$;

-- Locks those of the rows that no other transaction has locked. Returns those that are still due.
create function millrace.lock_due(p_pipeline millrace.pipelines, p_keys text[])
returns text[]
as $$
  v_due text[];

execute format(
  'select array(select e.%2$I::text from %3$s e '
  'where e.%2$I = any ($1::%4$s[]) and e.%1$I <= $2 '
  'and millrace.may_start_again($3, e.%2$I::text, e.%1$I) order by e.%2$I)',
  p_pipeline.due_column, p_pipeline.entity_key, p_pipeline.entity_table,
  millrace.key_type(p_pipeline))
into v_due
using millrace.lock_entities(p_pipeline.id, p_keys, false), v_now, p_pipeline.id;
return v_due;
$$;

-- Returns {next, soon}: when the next row of a pipeline becomes due, and how many rows do within an
-- hour, 1,001 at most. Returns null where the table or the column is gone.
create function millrace.due_json(p_pipeline millrace.pipelines, out due jsonb)
as $$
execute format('select json_build_object(''next'', min(at), ''soon'', count(*) filter ('
  'where at <= $1 + interval ''1h'')) from (select %1$I as at from %2$s where %1$I > $1'
  ' order by 1 limit 1001) d', p_pipeline.due_column, p_pipeline.entity_table)
into due
using v_now;
exception when undefined_column or undefined_table then
  null;
$$;

-- A finding for each pipeline with a due column: whether an index finds the due rows.
create view millrace.due_findings (what, ok, detail) as
select format('due rows of pipeline %s are found by an index', p.name), i.found,
  case
    when i.found then p.due_column
    else format('each sweep reads the whole table: create index concurrently on %s (%I, %I);',
      p.entity_table, p.due_column, p.entity_key)
  end
from millrace.pipelines p
cross join lateral (
  select exists (
    select from pg_index i
    join pg_class c on c.oid = i.indexrelid
    join pg_am m on m.oid = c.relam and m.amname = 'btree'
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = p.entity_table and a.attname = p.due_column
      and i.indisvalid) as found) i
where p.due_column is not null;
