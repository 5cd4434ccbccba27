-- Returns the caller with the rights of an operator. Raises 42501 for anybody who is no operator,
-- MR002 for a query with other fields, and MR003 for a pipeline that the operator does not see.
-- p_fields: the query's fields, as check_request() takes them; null checks no query.
create function millrace.authorize(p_query jsonb default null, p_fields jsonb default null)
returns millrace.caller
as $$
  v_caller millrace.caller := millrace.caller();

if v_caller.role is null then
  raise exception '42501: you are no operator here'
    using hint = 'Ask whoever runs this project to make you one.';
elsif p_fields is not null then
  perform millrace.check_request(p_query, p_fields, 'p_query');
  perform millrace.pipeline_named(p_query ->> 'pipeline', v_caller.pipelines)
  where p_query ? 'pipeline';
end if;
return v_caller;
$$;

-- Returns whether a caller sees a pipeline. A caller without a list of pipelines sees all.
create function millrace.sees(p_caller millrace.caller, p_pipeline text)
returns boolean
immutable
as $$
select p_caller.pipelines is null or p_pipeline = any (p_caller.pipelines)
$$;

-- Returns the ids of the pipelines that a caller sees.
-- p_pipeline: the name of one pipeline; null means all.
create function millrace.pipelines_seen(p_caller millrace.caller, p_pipeline text) returns int[]
stable
as $$
select array(
  select p.id
  from millrace.pipelines p
  where p.name = coalesce(p_pipeline, p.name)
    and millrace.sees(p_caller, p.name))
$$;

-- Returns a run. Raises MR003 where the caller sees no such run.
-- p_named: what the message calls the run; null means 'run' and its id.
create function millrace.run_seen(
  p_caller millrace.caller, p_run bigint, p_named text default null
)
returns millrace.runs
stable
as $$
  v_run millrace.runs;

select r.* into v_run
from millrace.runs r
join millrace.pipelines p on p.id = r.pipeline_id
where r.id = p_run
  and millrace.sees(p_caller, p.name);
if not found then
  raise exception 'MR003: there is no %', coalesce(p_named, 'run ' || p_run, 'run null')
    using hint = 'Look it up by its row: millrace_runs({"entity": "…"}).';
end if;
return v_run;
$$;

-- Writes a journal entry for each change of an operator's row.
create function millrace.note_operator() returns trigger
as $$
perform millrace.note(case tg_op when 'DELETE' then 'revoke' else 'grant' end, null, null, '{}',
  jsonb_build_object('outcome', coalesce(to_jsonb(new), to_jsonb(old))))
where to_jsonb(old) is distinct from to_jsonb(new);
return coalesce(new, old);
$$;

create trigger operators_are_noted
before insert or update or delete on millrace.operators
for each row execute function millrace.note_operator();
