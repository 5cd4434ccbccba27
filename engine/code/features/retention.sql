-- Retention: how long a pipeline keeps its runs, and the rows of tables that it declares
--
-- A declared table is the user's own, such as raw pages, and no entity table: with an entity go its
-- runs. Rows are found by the user's index on the column of times; without one the table is left
-- alone, and doctor() says so.

-- Raises MR001 unless the tables that a definition keeps for so many days can be pruned by their
-- columns.
create or replace function millrace.check_retention(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table jsonb;
  v_place int;
  v_class regclass;
  v_fault text;
begin
  for v_table, v_place in
    select t.value, t.place - 1
    from jsonb_array_elements(p_definition #> '{retention,tables}') with ordinality t(value, place)
  loop
    v_class := to_regclass(v_table ->> 'name');
    v_fault := case
      when v_class is null then 'there is no such table'
      when not exists (
          select
          from pg_class c
          join pg_namespace n on n.oid = c.relnamespace
          where c.oid = v_class
            and c.relkind = 'r'
            and n.nspname <> all (array['millrace', 'millrace_evidence', 'pg_catalog', 'cron']))
        then 'it is no ordinary table of yours'
      when v_class = to_regclass(p_definition #>> '{entity,table}')
          or exists (select from millrace.pipelines p where p.entity_table = v_class)
        then 'runs hang on its rows, and would go with them'
      when not exists (
          select
          from pg_attribute a
          where a.attrelid = v_class
            and a.attname = v_table ->> 'column'
            and not a.attisdropped
            and a.atttypid = 'timestamptz'::regtype)
        then format('it has no column %s of type timestamptz', v_table ->> 'column')
      when not has_table_privilege(v_class, 'delete')
        then format('%s may not delete from it', current_user) end;
    if v_fault is not null then
      raise exception 'retention.tables[%].name is %, but %', v_place, v_table ->> 'name', v_fault
        using errcode = 'MR001',
          hint = 'Name an ordinary table that is no entity table, with a timestamptz column and an '
            'index on it; or leave it out.';
    end if;
  end loop;
end
$$;

-- What is pruned: the runs of each pipeline (table_name is empty) and the tables that it declares.
create or replace view millrace.retained_tables as
select p.id as pipeline_id, '' as table_name, null as column_name,
  millrace.retention_days(p) as days
from millrace.pipelines p
union all
select p.id, t.name, (array_agg(t."column" order by t.days))[1], min(t.days)
from millrace.pipelines p
cross join lateral jsonb_to_recordset(p.retention -> 'tables')
  t(name text, "column" text, days int)
group by p.id, t.name;
comment on view millrace.retained_tables is
  'What prune() goes through, by numbers; read it through millrace.retention.';

-- Writes the statement that makes the index by which old rows of a table are found; null where
-- there is one, or no such table any more.
create or replace function millrace.missing_time_index(p_table regclass, p_column text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_table is null or exists (
      select
      from pg_index i
      join pg_class c on c.oid = i.indexrelid
      join pg_am m on m.oid = c.relam and m.amname = 'btree'
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      where i.indrelid = p_table
        and a.attname = p_column
        and i.indpred is null
        and i.indisvalid) then
    return null;
  end if;
  return format('create index concurrently on %s (%I);', p_table, p_column);
end
$$;

-- Says why rows of a declared table cannot be pruned today; null when they can.
create or replace function millrace.retention_fault(p_table_name text, p_column text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table regclass := to_regclass(p_table_name);
begin
  return case
    when v_table is null
      then 'there is no such table any more: take it out of the pipeline''s retention'
    when exists (select from millrace.pipelines p where p.entity_table = v_table)
      then 'a pipeline runs over it now, and runs would go with its rows: take it out of the '
        || 'pipeline''s retention'
    when not exists (
        select
        from pg_attribute a
        where a.attrelid = v_table
          and a.attname = p_column
          and not a.attisdropped
          and a.atttypid = 'timestamptz'::regtype)
      then format('it has no column %s of type timestamptz any more: name another in the '
        || 'pipeline''s retention', p_column)
    else 'no index leads to its old rows: ' || millrace.missing_time_index(v_table, p_column) end;
end
$$;

-- Deletes rows of a table by their places, but for those that cannot be; returns how many. It
-- halves a batch until the guilty row stands alone, as prune_runs() does.
create or replace function millrace.prune_rows(p_table regclass, p_rows tid[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set enable_tidscan = on
as $$
declare
  v_half int := cardinality(p_rows) / 2;
  v_context text;
  v_count int;
begin
  begin
    execute format('delete from only %s t where t.ctid = any ($1)', p_table) using p_rows;
    get diagnostics v_count = row_count;
    return v_count;
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    if v_half = 0 then
      perform millrace.report('error', 'row_not_pruned',
        format('A row of table %s cannot be pruned: %s', p_table, sqlerrm));
      return 0;
    end if;
  end;
  return millrace.prune_rows(p_table, p_rows[:v_half])
    + millrace.prune_rows(p_table, p_rows[v_half + 1:]);
end
$$;

-- Finds and locks the next so many rows of a table that are too old, by their times and places.
create or replace function millrace.old_rows(
  p_table regclass, p_column text, p_before timestamptz, p_progress millrace.prune_progress,
  p_limit int, out rows tid[], out free tid[], out last_at timestamptz
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  execute format($q$
    with old as materialized (
      select t.ctid as place, t.%2$I as at
      from only %1$s t
      where t.%2$I >= $1
        and (t.%2$I, t.ctid) > ($1, $2)
        and t.%2$I < $3
      order by t.%2$I, t.ctid
      limit $4
    ), free as materialized (
      select t.ctid as place
      from only %1$s t
      where t.ctid = any (array(select o.place from old o))
      order by t.ctid
      for update skip locked
    )
    select array(select o.place from old o order by o.at, o.place),
      array(select f.place from free f order by f.place), (select max(o.at) from old o)$q$,
    p_table, p_column)
  into rows, free, last_at
  using p_progress.seen_at, p_progress.seen_row, p_before, p_limit;
end
$$;

-- Prunes a declared table from where its round stands, until the time is up or the round done.
-- Returns how many rows it deleted.
create or replace function millrace.prune_table(
  p_pipeline millrace.pipelines, p_table_name text, p_until timestamptz
) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table millrace.retained_tables;
  v_fault text;
  v_progress millrace.prune_progress;
  v_batch record;
  v_done int := 0;
  v_over boolean;
begin
  select t.* into v_table
  from millrace.retained_tables t
  where t.pipeline_id = p_pipeline.id
    and t.table_name = p_table_name;
  select g.* into v_progress
  from millrace.prune_progress g
  where g.pipeline_id = p_pipeline.id
    and g.table_name = p_table_name;
  v_fault := millrace.retention_fault(p_table_name, v_table.column_name);
  v_over := v_table.days is null or v_fault is not null;
  while not v_over loop
    v_batch := millrace.old_rows(p_table_name::regclass, v_table.column_name,
      millrace.now() - make_interval(days => v_table.days), v_progress, 1000);
    v_over := cardinality(v_batch.rows) < 1000;
    exit when cardinality(v_batch.rows) = 0;
    v_progress.seen_at := v_batch.last_at;
    v_progress.seen_row := v_batch.rows[cardinality(v_batch.rows)];
    v_done := v_done + millrace.prune_rows(p_table_name::regclass, v_batch.free);
    exit when millrace.now() >= p_until;
  end loop;
  update millrace.prune_progress g
  set seen_at = v_progress.seen_at, seen_row = v_progress.seen_row,
    removed = g.removed + v_done,
    ended_at = case when v_over then millrace.now() end
  where g.pipeline_id = p_pipeline.id
    and g.table_name = p_table_name;
  return v_done;
end
$$;

-- define() keeps what a definition says of retention, and names the indexes that pruning needs.
create or replace function millrace.save_retention(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table millrace.retained_tables;
  v_statement text;
begin
  update millrace.pipelines p
  set retention = nullif(p_definition -> 'retention', '{}')
  where p.id = p_pipeline_id
    and p.retention is distinct from nullif(p_definition -> 'retention', '{}');
  for v_table in
    select t.*
    from millrace.retained_tables t
    where t.pipeline_id = p_pipeline_id
      and t.table_name <> ''
  loop
    v_statement := millrace.missing_time_index(
      to_regclass(v_table.table_name), v_table.column_name);
    if v_statement is not null then
      raise warning 'column % of table % has no index, so its old rows stay',
        v_table.column_name, v_table.table_name
        using hint = 'Make one: ' || v_statement;
    end if;
  end loop;
end
$$;

-- Counts to 10,000 what is due at a pipeline's runs or at a table from a time on, and says how old
-- the oldest is.
create or replace function millrace.due_to_prune(
  p_pipeline_id int, p_table_name text, p_column text, p_days int, p_from timestamptz,
  out due bigint, out oldest timestamptz
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_before timestamptz := millrace.now() - make_interval(days => p_days);
begin
  if p_table_name = '' then
    select count(*), min(d.finished_at) into due, oldest
    from (
      select r.finished_at
      from millrace.runs r
      where r.pipeline_id = p_pipeline_id
        and r.finished_at >= p_from
        and r.finished_at < v_before
      order by r.finished_at
      limit 10000) d;
  elsif millrace.retention_fault(p_table_name, p_column) is null then
    execute format($q$
      select count(*), min(d.at)
      from (
        select t.%2$I as at
        from only %1$s t
        where t.%2$I >= $1
          and t.%2$I < $2
        order by t.%2$I
        limit 10000) d$q$,
      p_table_name::regclass, p_column)
    into due, oldest
    using p_from, v_before;
  end if;
end
$$;

create or replace view millrace.retention as
select p.name as pipeline, nullif(t.table_name, '') as table_name, t.days, d.due,
  d.oldest as oldest_due, g.removed, g.began_at, g.ended_at
from millrace.retained_tables t
join millrace.pipelines p on p.id = t.pipeline_id
left join millrace.prune_progress g
  on g.pipeline_id = t.pipeline_id and g.table_name = t.table_name
cross join lateral millrace.due_to_prune(t.pipeline_id, t.table_name, t.column_name, t.days,
  case when g.ended_at is null then coalesce(g.seen_at, '-infinity') else '-infinity' end) d
order by p.name, t.table_name;
comment on view millrace.retention is
  'What is kept for how many days: the runs of each pipeline (table_name is null) and the tables '
  'that it declares. due: how much is older and still to be looked at, counted to 10,000; removed: '
  'what the present round of prune() has deleted, or the last one, if ended_at is not null.';

-- Looks at what pruning has yet to do, and at tables that it cannot prune.
create or replace function millrace.retention_findings()
returns table (what text, ok boolean, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return query
    select 'pruning keeps up', count(*) = 0,
      coalesce(string_agg(format('%s of %s: a round began at %s and is not done', case
          when g.table_name = '' then 'the runs' else 'table ' || g.table_name end, p.name,
          to_char(g.began_at, 'YYYY-MM-DD HH24:MI:SS')), ', ' order by p.name, g.table_name)
        || ': look at cron.job and cron.job_run_details for millrace-prune-more, and at '
        || 'millrace.retention for what is due', 'no round takes longer than a day')
    from millrace.prune_progress g
    join millrace.pipelines p on p.id = g.pipeline_id
    where g.ended_at is null
      and g.began_at < v_now - interval '1 day';
  return query
    select format('old rows of table %s are pruned', t.table_name), f.fault is null,
      coalesce(f.fault, format('after %s days', t.days))
    from millrace.retained_tables t
    cross join lateral millrace.retention_fault(t.table_name, t.column_name) f(fault)
    where t.table_name <> '';
end
$$;
