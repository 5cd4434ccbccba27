-- Raises MR001 where a definition names a table, column or function that this database lacks, or
-- that has another type; and where a path or a value is malformed.
create function millrace.check_names(p_definition jsonb)
as $$
perform millrace.refuse(f.what, f.remedy)
from (
  with here as materialized (
    select to_regclass(e."table") as entity_table, e.*, e.status ->> 'column' as status_column
    from jsonb_to_record(p_definition -> 'entity')
      e("table" text, key text, projection text, status jsonb)
  )
  -- The table must have all its rows itself, so that its triggers see every write. A crash would
  -- empty an unlogged one.
  select 1 as ordinal, format('entity.table is %s, which is no ordinary table',
    to_json(h."table")) as what, 'Name a table that is logged, without partitions or '
    'inheritance, with its schema; create it in an earlier migration.' as remedy
  from here h
  where not exists (
      select from pg_class c
      where c.oid = h.entity_table
        and (c.relkind, c.relispartition, c.relpersistence) = ('r', false, 'p')
        and not exists (select from pg_inherits i where c.oid in (i.inhparent, i.inhrelid)))
  union all
  select 3, format('%s %s, which %s', c.field, case
      when c.read then 'asks for $.entity.' || c."column" else 'is ' || to_json(c."column") end,
    case
      when a.attname is null then 'is no column of ' || c."table"
      when k.name is null then 'is of type ' || format_type(a.atttypid, null)
      else format('the engine keeps for stage %s and which no path sees', k.name)
    end), case when k.name is null then c.remedy
      else 'Ask for a column of your own, or in when for a result under $.needs.' end
  from here h
  cross join jsonb_to_recordset(p_definition -> 'columns')
    c(field text, "table" text, "column" text, types text[], read boolean, remedy text)
  left join pg_attribute a on a.attrelid = to_regclass(c."table")
    and a.attname = c."column" and a.attnum > 0 and not a.attisdropped
  left join lateral (
    select o.name
    from (
      select s ->> 'name' from jsonb_array_elements(p_definition -> 'stages') s
      union all
      select t.name
      from millrace.pipelines p
      join millrace.stages t on t.pipeline_id = p.id
      where p.name = p_definition ->> 'pipeline') o(name)
    where c.read and c."column" = any (case h.projection
      when 'columns' then millrace.stage_columns(o.name)
      when 'status' then millrace.status_columns(h.status) end)
    limit 1) k on true
  where a.attname is null or format_type(a.atttypid, null) <> all (c.types)
    or k.name is not null
  union all
  select 4, format('%s is %s, but there is no function %s(%s)', f.field, to_json(f.name), f.name,
    f.arguments), f.remedy
  from jsonb_to_recordset(p_definition -> 'functions')
    f(field text, name text, arguments text, remedy text)
  where to_regprocedure(format('%s(%s)', f.name, f.arguments)) is null
  union all
  select 5, format('entity.status.values: %s is no smallint, which the column is', v.value),
    'List each value once, as the column shows it.'
  from here h
  join pg_attribute a on a.attrelid = h.entity_table and a.attname = h.status_column
    and a.atttypid = 'smallint'::regtype
  cross join jsonb_to_recordset(p_definition -> 'values') v(value text)
  where v.value is distinct from
    case when millrace.input_fault(v.value, 'smallint') is null
      then v.value::smallint::text end
  union all
  -- Without its quoted parts, the canonical form of a path has $"" where a variable stands.
  select 2, format('%s is %s, but must be a jsonpath%s%s', p.field, to_json(p.path),
    case when p.predicate then ' predicate' end, w.what), format('Write for example %s.%s',
      p.example, case when w.what ~ '^, which' then ' Compare what it finds with something, or '
        'ask whether there is any: "exists($.entity.tags[*] ? (@ == \"new\"))".' end)
  from jsonb_to_recordset(p_definition -> 'paths')
    p(field text, path text, predicate boolean, example text)
  cross join millrace.input_fault(p.path, 'jsonpath') i(fault)
  cross join lateral (
    select case
        when i.fault is not null then format(' (%s)', i.fault)
        when regexp_replace(p.path::jsonpath::text, '(\$?)"(\\.|[^"\\])*"', '\1""', 'g') ~ '\$""'
          then ' without variables'
        when p.path ~ '\.datetime\(' and current_setting('server_version_num')::int < 170000
          then ' without datetime(), which reads ISO times from Postgres 17 on'
        when p.predicate and jsonb_path_query_array('{}', p.path::jsonpath, '{}', true)
            <> all ('{[true],[false],[null]}'::jsonb[])
          then ', which is true or false'
      end) w(what)
  where w.what is not null
  order by ordinal
  limit 1) f;
$$;

-- Raises MR001 where a stage does not fit the pipelines, limits and settings of this database.
create function millrace.check_stages(p_definition jsonb)
as $$
perform millrace.refuse(format('stage %s: %s', f.stage, f.what), f.remedy)
from (
  with recursive above(id) as (
    select p.id from millrace.pipelines p where p.name = p_definition ->> 'pipeline'
    union
    select p.id
    from above a
    join millrace.version_stages vs on vs.child_pipeline_id = a.id
    join millrace.pipelines p on p.current_version_id = vs.version_id
  ), stage as materialized (
    select s.*, c.id as child_id, c.entity_table, c.entity_key,
      format('child.pipeline is %s, but must be ', s.child -> 'pipeline') as child_is
    from jsonb_to_recordset(p_definition -> 'stages') s(
      name text, kind text, timeout text, host text, child jsonb, limits jsonb, when_spent text,
      after jsonb)
    left join millrace.pipelines c on c.name = s.child ->> 'pipeline'
  )
  select s.name as stage, w.*
  from stage s
  cross join millrace.setting('worker_seconds') most(seconds)
  cross join lateral (values
    (1, s.host is null and s.timeout::interval > make_interval(secs => most.seconds::float8),
      format('timeout is "%s", but must be at most %s, or no worker could ever claim it',
        s.timeout, most.seconds),
      'Lower timeoutSeconds, or raise worker_seconds (paid plans allow about 190) together with '
      'WORKER_SECONDS of the functions.'),
    (2, s.when_spent = 'bypass' and not exists (
        select from millrace.limits l
        where l.declared ? 'spending' and s.limits -> 'shared' ? l.name),
      'when_spent is "bypass", but must be wait where limits.shared names no limit with spending',
      'Name one in limits.shared (see millrace.limits), or leave when_spent out.'),
    (3, s.child is not null and s.child_id is null,
      s.child_is || 'the name of a pipeline that is defined already',
      'Define the child pipeline first.'),
    (4, s.child_id in (select a.id from above a),
      s.child_is || 'a pipeline that does not start this one in turn',
      'Pipelines that contain one another would never end.'),
    (5, s.kind = 'pipeline' and (s.entity_table, s.entity_key)
        <> (to_regclass(p_definition #>> '{entity,table}'), p_definition #>> '{entity,key}'),
      format('%sa pipeline over the same table and key (this one is over %s.%s)', s.child_is,
        s.entity_table, s.entity_key), 'A stage of kind pipeline runs over the same row; for '
      'rows of another table use the kind map.')) w(ordinal, wrong, what, remedy)
  where w.wrong
  union all
  select s.name, 6, true, format('after names the stage %s of pipeline %s, which does not exist',
    to_json(a.stage), m.child ->> 'pipeline'), 'Name a stage of the map''s child pipeline in '
    '"stage"; define the child pipeline first.'
  from stage s
  cross join jsonb_to_recordset(s.after) a(map text, stage text)
  join stage m on m.name = a.map
  where not exists (
      select from millrace.pipelines p
      join millrace.version_stages vs on vs.version_id = p.current_version_id
      join millrace.stages c on c.id = vs.stage_id
      where p.id = m.child_id and c.name = a.stage)
  order by ordinal
  limit 1) f;
$$;

-- Raises MR001 where a definition is not compiled, was changed since, or has names that this
-- database lacks. The compiler has checked the definition's form, and the digest proves that it is
-- unchanged. Only a definition that somebody has signed by hand has words where numbers belong.
create function millrace.check_definition(p_definition jsonb)
as $$
  c_compiler constant text := '1';
  c_remedy constant text :=
    'Write it with definePipeline() and run `npx millrace sync` of this release.';
  v_given record;

perform millrace.refuse(concat_ws(' ', 'the definition',
    'of pipeline ' || (p_definition ->> 'pipeline')) || ' ' || case
    when jsonb_typeof(p_definition) is distinct from 'object'
      or not p_definition ?& '{compiler,digest}' then 'is not compiled'
    when p_definition ->> 'compiler' <> c_compiler
      then format('was compiled by compiler %s, but this engine takes what compiler %s writes',
        p_definition ->> 'compiler', c_compiler)
    when p_definition ->> 'digest'
      <> encode(sha256(convert_to((p_definition - 'digest')::text, 'UTF8')), 'hex')
      then 'was changed after it was compiled'
  end, c_remedy);
perform millrace.refuse(
  format('%s: %s is %s, but must be a number', o.name, f.key, f.value), c_remedy)
from (
  select 'stage ' || (s ->> 'name') as name, s - '{decision,shows}'::text[] as part
  from jsonb_array_elements(p_definition -> 'stages') s
  union all
  select p, p_definition -> p from unnest('{quota,sla,retention,rules}'::text[]) p) o
cross join jsonb_path_query(o.part, 'strict $.**') j
cross join jsonb_each(case jsonb_typeof(j) when 'object' then j end) f
join (values
  ('(^|_)(seconds|days|count|burst|usd|limit|flight|backlog|size|workers|concurrency|bytes|attempts'
    '|factor|jitter|turns|tokens|above|least|n|position)$', '^[][0-9.,e+ -]+$'),
  ('^(lease|timeout|poll_every|deadline|sla|span|hold|recover)$', '^"[0-9.]+ s"$')) k(keys, form)
  on f.key ~ k.keys and f.value::text !~ k.form and jsonb_typeof(f.value) not in ('object', 'null')
limit 1;
for v_given in
  select p.field, p.pattern
  from jsonb_to_recordset(p_definition -> 'patterns') p(field text, pattern text)
loop
  begin
    perform '' ~ v_given.pattern;
  exception when others then
    perform millrace.refuse(format('%s is %s, but must be a regular expression that '
        'Postgres can read (%s)', v_given.field, to_json(v_given.pattern), sqlerrm),
      'Correct or simplify it.');
  end;
end loop;
perform millrace.check_names(p_definition);
$$;
