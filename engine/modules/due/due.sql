-- Due: the sweep starts runs by a timestamp column of the entity
--
-- A row whose column is past gets a run, unless it has a live one. The run itself, or the user,
-- moves the column on: a time after the run's own start is a new one. While nobody does, the row
-- gets its next run a minute after the last began.
--
-- What a sweep looks at is bounded, however many rows are past due and under way: first the rows
-- that became due since it looked last, then the next few thousand of all that are past due, in
-- order and round and round. Both read the user's own index on the column.

-- Keeps the column by which runs of a pipeline are due. Where that has no index it says so, and how
-- one is made: each sweep would read the whole table.
create function millrace.save_due(p_pipeline_id int, p_definition jsonb)
as $$
declare
  v_column text := p_definition #>> '{entity,due}';
  v_pipeline millrace.pipelines;
  v_statement text;
begin
  update millrace.pipelines p
  set due_column = v_column
  where p.id = p_pipeline_id
    and p.due_column is distinct from v_column;
  if found then
    delete from millrace.due_progress d where d.pipeline_id = p_pipeline_id;
  end if;
  if v_column is null then
    return;
  end if;
  insert into millrace.due_progress (pipeline_id, seen_until)
  values (p_pipeline_id, '-infinity')
  on conflict on constraint due_progress_pkey do nothing;
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  v_statement := millrace.missing_due_index(v_pipeline);
  if v_statement is not null then
    raise warning 'column % of table % has no index, so each sweep reads the whole table',
      v_column, v_pipeline.entity_table
      using hint = 'Make one: ' || v_statement;
  end if;
end
$$;

-- Writes the statement that makes the index by which due rows are found; null where the column has
-- one, or the pipeline no such column.
create function millrace.missing_due_index(p_pipeline millrace.pipelines)
returns text
stable
as $$
begin
  if p_pipeline.due_column is null or exists (
      select
      from pg_index i
      join pg_class c on c.oid = i.indexrelid
      join pg_am m on m.oid = c.relam and m.amname = 'btree'
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      where i.indrelid = p_pipeline.entity_table
        and a.attname = p_pipeline.due_column
        and i.indisvalid) then
    return null;
  end if;
  return format('create index concurrently on %s (%I, %I);',
    p_pipeline.entity_table, p_pipeline.due_column, p_pipeline.entity_key);
end
$$;

-- Starts up to so many due runs of a pipeline; returns how many. The holder of its progress does,
-- so that two sweeps at once never look at the same rows.
create function millrace.start_due_runs(p_pipeline_id int, p_limit int) returns int
as $$
declare
  v_pipeline millrace.pipelines;
  v_progress millrace.due_progress;
  v_started record;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  if not exists (select from millrace.due_rows(v_pipeline, null, null, 1)) then
    return 0;
  end if;
  -- In the order of define(), which holds the table when it writes the progress.
  execute format('lock table %s in row exclusive mode', v_pipeline.entity_table);
  select d.* into v_progress
  from millrace.due_progress d
  where d.pipeline_id = p_pipeline_id
  for update skip locked;
  if not found then
    return 0;
  end if;
  v_started := millrace.in_halves(
    millrace.lock_due(v_pipeline, millrace.next_due(v_pipeline, v_progress, p_limit)),
    format('select cardinality($1) from millrace.queue_stage(%s, %s, $1, $1, false)',
      p_pipeline_id, millrace.first_stage(p_pipeline_id)),
    clock_timestamp() + interval '2 seconds');
  perform millrace.report('error', 'due_not_started', format(
    'Row %s of pipeline %s is due, but no run can start%s: %s', r.key, v_pipeline.name,
    case when r.others > 0 then ', nor for ' || r.others || ' others' end, r.why))
  from unnest(v_started.refused, v_started.others, v_started.why) r(key, others, why);
  return v_started.done;
end
$$;

-- Looks at the rows of a pipeline that became due since the sweep looked last, and at the next of
-- all that are past due, unless the former are a portion; returns those that may start.
create function millrace.next_due(
  p_pipeline millrace.pipelines, p_progress millrace.due_progress, p_limit int
) returns text[]
as $$
declare
  v_look constant int := 5000;
  v_now timestamptz := millrace.now();
  v_fresh record;
  v_row record;
  v_looked int := 0;
  v_room int;
  v_keys text[] := '{}';
begin
  select count(*) as looked, max(k.due) as last,
    coalesce(array_agg(k.key) filter (
      where millrace.is_rested(p_pipeline.id, k.key, k.due)), '{}') as keys
  into v_fresh
  from millrace.due_rows(p_pipeline, p_progress.seen_until, null, p_limit) k;
  v_room := p_limit - cardinality(v_fresh.keys);
  for v_row in
    select k.key, k.due
    from millrace.due_rows(p_pipeline, p_progress.lap_at, p_progress.lap_key,
      case when v_room > 0 then v_look else 0 end) k
  loop
    v_looked := v_looked + 1;
    if millrace.is_rested(p_pipeline.id, v_row.key, v_row.due) then
      v_keys := v_keys || v_row.key;
    end if;
    exit when cardinality(v_keys) = v_room;
  end loop;
  update millrace.due_progress d
  set seen_until = case v_fresh.looked
      when p_limit then v_fresh.last
      when 0 then d.seen_until
      else v_now
    end,
    lap_at = case
      when v_room = 0 then d.lap_at
      when v_looked = v_look or cardinality(v_keys) = v_room then v_row.due
    end,
    lap_key = case
      when v_room = 0 then d.lap_key
      when v_looked = v_look or cardinality(v_keys) = v_room then v_row.key
    end
  where d.pipeline_id = p_pipeline.id;
  return array(select distinct k from unnest(v_fresh.keys || v_keys) k);
end
$$;

-- Finds the next rows that are past due, in the order of column and key.
create function millrace.due_rows(
  p_pipeline millrace.pipelines, p_after timestamptz, p_after_key text, p_limit int
) returns table (key text, due timestamptz)
volatile
as $$
declare
  v_beyond text := case
    when p_after is null then ''
    when p_after_key is null then 'and e.%1$I > $2'
    else 'and e.%1$I >= $2 and (e.%1$I, e.%2$I) > ($2, $3::%4$s)'
  end;
begin
  return query execute format(
    'select e.%2$I::text, e.%1$I from %3$s e where e.%1$I <= $1 ' || v_beyond
      || ' order by e.%1$I, e.%2$I limit $4',
    p_pipeline.due_column, p_pipeline.entity_key, p_pipeline.entity_table,
    millrace.key_type(p_pipeline))
  using millrace.now(), p_after, p_after_key, p_limit;
end
$$;

-- Says whether a run of a row may start because it is due: it has no live one, and its last began
-- before it was due, or a minute ago or earlier.
create function millrace.is_rested(p_pipeline_id int, p_key text, p_due timestamptz)
returns boolean
volatile
as $$
begin
  return not exists (
    select
    from (
      select r.status, r.created_at
      from millrace.runs r
      where r.entity_id = p_key
        and r.pipeline_id = p_pipeline_id
      order by r.id desc
      limit 1) l
    where l.status = 'running'
      or l.created_at >= p_due and l.created_at > millrace.now() - interval '1 minute');
end
$$;

-- Locks the rows among these that nobody holds, and returns those of them that are still due, now
-- that nobody can start them beside this.
create function millrace.lock_due(p_pipeline millrace.pipelines, p_keys text[])
returns text[]
as $$
declare
  v_held text[] := millrace.lock_entities(p_pipeline.id, p_keys, false);
  v_due text[];
begin
  execute format(
    'select coalesce(array_agg(e.%2$I::text order by e.%2$I), ''{}'') from %3$s e '
    'where e.%2$I = any ($1::%4$s[]) and e.%1$I <= $2 '
    'and millrace.is_rested($3, e.%2$I::text, e.%1$I)',
    p_pipeline.due_column, p_pipeline.entity_key, p_pipeline.entity_table,
    millrace.key_type(p_pipeline))
  into v_due
  using v_held, millrace.now(), p_pipeline.id;
  return v_due;
end
$$;

-- Looks for columns by which runs are due that have no index.
create function millrace.due_findings() returns setof millrace.finding
language sql stable
as $$
  select format('due rows of pipeline %s are found by an index', p.name), i.missing is null,
    coalesce('each sweep reads the whole table: ' || i.missing, p.due_column)
  from millrace.pipelines p
  cross join lateral millrace.missing_due_index(p) i(missing)
  where p.due_column is not null
$$;
