-- Bulks: a verb over all runs that match a filter
--
-- The verb `continue` and the sweep work a bulk off in slices, in the order in which find_runs()
-- lists runs. Each slice writes in its transaction how far the bulk has come, so no run is done
-- twice.

-- Returns a bulk as operators read it.
create function millrace.bulk_json(p_bulk millrace.bulks) returns jsonb
stable
as $$
select jsonb_strip_nulls(
  to_jsonb(p_bulk) - '{id,args,pipeline_id,subject,key,cursor,slices,created_at}'::text[]
  || jsonb_build_object('bulk', p_bulk.id, 'do', p_bulk.args, 'by', p_bulk.subject,
    'locked', cardinality(p_bulk.locked)))
$$;

-- Writes the row of a bulk, and counts the runs that its filter finds now, to 10,000.
-- The bulk keeps its filter, which ends at the present moment. The row's preview has cost_usd, the
-- forecast of the bulk's cost: for each stage that the verb starts, the mean cost of an attempt
-- there. Null where no attempt named a price. Children are left out.
create function millrace.preview_bulk(
  p_caller millrace.caller,
  p_do jsonb,
  p_filter jsonb,
  p_reason text)
returns millrace.bulks
as $$
  v_verb text := p_do ->> 'verb';
  v_pipeline millrace.pipelines;
  v_stage_id int;
  v_filter jsonb;
  v_found record;
  v_cost_usd numeric;
  v_bulk millrace.bulks;

perform millrace.check_request(p_do, jsonb_build_object('verb', array(
  select r.verb from millrace.run_verbs r where r.is_open))
  || '{"stage": "name", "message": "reason", "permanent": "boolean"}', 'do');
perform millrace.need_fields(p_do, 'verb');
perform millrace.need_fields(p_do, variadic r.needs)
from millrace.run_verbs r
where r.verb = v_verb;
perform millrace.check_request(p_filter, millrace.filter_fields(), 'filter');
perform millrace.need_fields(p_filter || '{"verb": "a bulk"}', 'pipeline');
-- A reset suits runs of any status, so its filter must name one.
perform millrace.need_fields(p_filter || '{"verb": "reset"}', 'status') where v_verb = 'reset';
v_pipeline := millrace.pipeline_named(p_filter ->> 'pipeline', p_caller.pipelines);
if p_do ? 'stage' then
  v_stage_id := (millrace.stage_named(v_pipeline.name, p_do ->> 'stage')).id;
end if;
-- before excludes its own moment: one microsecond more includes runs that end at this moment.
v_filter := jsonb_build_object(
    'status', case when v_verb = 'retry' then 'failed' else 'running' end)
  || p_filter || jsonb_strip_nulls(jsonb_build_object(
    'since', (p_filter ->> 'since')::timestamptz,
    'before', least(
      (p_filter ->> 'before')::timestamptz, v_now + interval '1 microsecond')));
v_found := millrace.find_runs(array[v_pipeline.id], v_filter || '{"limit": 10000}');
v_cost_usd := (
  select nullif(round(sum(b.runs * m.usd), 6), 0)
  from (
    select r.pipeline_id, r.version_id, count(*) as runs,
      coalesce(v_stage_id, case when v_verb = 'retry' then r.failed_stage_id end) as stage_id
    from millrace.runs r
    where r.id = any (v_found.run_ids)
      and v_verb in ('retry', 'reset', 'skip')
    group by 1, 2, 4) b
  left join millrace.version_stages f
    on f.version_id = b.version_id and f.stage_id = b.stage_id
  join millrace.version_stages vs on vs.version_id = b.version_id
    and (vs.stage_id = any (f.dependents)
      or vs.stage_id = f.stage_id and v_verb <> 'skip'
      or b.stage_id is null and v_verb = 'reset')
  cross join lateral (
    -- The first outcome in this order is completed. The others serve where no attempt completed.
    select s.cost_usd / s.n as usd
    from millrace.sums s
    where s.unit = 'total' and s.pipeline_id = b.pipeline_id
      and s.stage_id = vs.stage_id
      and s.outcome in ('completed', 'failed', 'retried')
      and s.n > 0
    order by s.outcome
    limit 1) m);
insert into millrace.bulks (
  args, filter, pipeline_id, subject, key, preview, reason, created_at)
select p_do, v_filter, v_pipeline.id, p_caller.subject, p_caller.key, jsonb_build_object(
    'runs', to_char(count(*), 'FM99,999') || case when v_found.next is null then '' else '+' end,
    'oldest', min(coalesce(r.finished_at, r.created_at)),
    'newest', max(coalesce(r.finished_at, r.created_at)),
    'cost_usd', v_cost_usd),
  p_reason, v_now
from millrace.runs r
where r.id = any (v_found.run_ids)
returning * into v_bulk;
return v_bulk;
$$;

-- Previews, tries, begins, continues or aborts a bulk. Each slice acts in the name of the caller
-- who began the bulk.
create function millrace.act_in_bulk(p_caller millrace.caller, p_request jsonb)
returns jsonb
as $$
  v_verb text := p_request ->> 'verb';
  v_bulk millrace.bulks;

if v_verb = 'preview' then
  v_bulk := millrace.preview_bulk(
    p_caller, p_request -> 'do', p_request -> 'filter', p_request ->> 'reason');
else
  select b.* into v_bulk
  from millrace.bulks b
  where b.id = (p_request -> 'bulk')::bigint
    and millrace.sees(p_caller, b.filter ->> 'pipeline')
  for no key update;
end if;
if v_bulk.id is null then
  raise exception 'MR003: there is no bulk % that you see', p_request ->> 'bulk'
    using hint = 'Those that run are in millrace_overview().';
elsif v_verb in ('begin', 'try') and v_bulk.state <> 'previewed'
  or v_verb = 'abort' and v_bulk.state in ('done', 'aborted') then
  raise exception 'MR004: bulk % cannot be %: it is %', v_bulk.id,
    case v_verb when 'begin' then 'begun' when 'try' then 'tried' else 'aborted' end, v_bulk.state
    using hint = 'Help one that runs on by continue, or preview it anew.';
elsif v_verb in ('begin', 'try') then
  update millrace.bulks b
  set state = 'running', subject = p_caller.subject, key = p_caller.key,
    began_at = v_now, reason = coalesce(p_request ->> 'reason', b.reason)
  where b.id = v_bulk.id
  returning b.* into v_bulk;
  if v_verb = 'try' then
    perform millrace.work_slice(v_bulk.id, 1);
    update millrace.bulks b
    set state = case b.state when 'running' then 'previewed' else b.state end
    where b.id = v_bulk.id
    returning b.* into v_bulk;
  end if;
elsif v_verb = 'abort' then
  v_bulk := millrace.end_bulk(v_bulk.id, 'aborted', p_request ->> 'reason');
elsif v_verb = 'continue' then
  v_bulk := millrace.work_slice(v_bulk.id);
end if;
return jsonb_build_object(
  'pipeline', v_bulk.filter ->> 'pipeline', 'stage', v_bulk.args ->> 'stage',
  'filter', v_bulk.filter, 'bulk_id', v_bulk.id, 'outcome', millrace.bulk_json(v_bulk));
$$;

-- Ends a bulk as done or aborted, and returns its row.
-- p_why: the reason of an abort.
create function millrace.end_bulk(p_bulk_id bigint, p_state text, p_why text default null)
returns millrace.bulks
as $$
update millrace.bulks b
set state = p_state, why = p_why, ended_at = v_now
where b.id = p_bulk_id
returning b.*
$$;

-- Does a bulk's verb to the runs of its next slice, and returns the bulk. Does nothing while
-- another session works at the bulk. Runs that are locked, or that the database refuses for now,
-- come with a later slice. The slice passes over runs that no longer match once they are locked,
-- that cannot go on, or that have gone on meanwhile.
-- p_most: the number of runs; null means 500, or 100 for a verb that goes run by run.
create function millrace.work_slice(p_bulk_id bigint, p_most int default null)
returns millrace.bulks
set lock_timeout = '200ms'
as $$
  v_bulk millrace.bulks;
  v_verb text;
  v_pipeline text;
  v_found record;
  v_wanted bigint[];
  v_entities text[];
  v_free bigint[];
  v_still bigint[];
  v_did record;
  v_done bigint[];
  v_locked bigint[];
  v_faults jsonb[];

select b.* into v_bulk
from millrace.bulks b where b.id = p_bulk_id for no key update skip locked;
if v_bulk.state is distinct from 'running' then
  return (select b from millrace.bulks b where b.id = p_bulk_id);
end if;
v_verb := v_bulk.args ->> 'verb';
v_pipeline := v_bulk.filter ->> 'pipeline';
if v_bulk.key = 'user' and not exists (
    select from millrace.operators o
    where o.subject = v_bulk.subject and o.role = 'operator'
      and (o.pipelines is null or v_pipeline = any (o.pipelines))) then
  return millrace.end_bulk(p_bulk_id, 'aborted', v_bulk.subject || ' may no longer act here');
end if;
-- A verb that goes run by run takes longer for 500 runs than the Data API allows for a call.
v_found := millrace.find_runs(array[v_bulk.pipeline_id], v_bulk.filter || jsonb_build_object(
  'cursor', v_bulk.cursor,
  'limit', (select case when p_most is not null then p_most
      when r.in_sets and not v_bulk.args ? 'stage' then 500 else 100 end
    from millrace.run_verbs r where r.verb = v_verb)));
v_wanted := v_bulk.locked[:200] || v_found.run_ids;
v_entities := millrace.lock_present(v_bulk.pipeline_id, array(
  select r.entity_id from millrace.runs r where r.id = any (v_wanted)));
v_free := array(
  select r.id
  from millrace.runs r
  where r.id = any (v_wanted) and millrace.key_of(r) = any (v_entities)
  order by r.id
  for no key update skip locked);
v_still := array(
  select r.id
  from unnest((millrace.find_runs(array[v_bulk.pipeline_id], v_bulk.filter || jsonb_build_object(
    'runs', v_free, 'limit', cardinality(v_free) + 1))).run_ids) s(id)
  join millrace.runs r on r.id = any (array[s.id])
  left join millrace.fan_outs f on f.id = r.fan_out_id and f.state in ('abandoned', 'closed')
  where (v_verb = 'cancel' or f.id is null and millrace.is_latest_run(r.id))
    -- After the clock was set back, a run that the bulk has done can end behind the cursor again.
    and not exists (
      select from millrace.journal j where j.run_ids @> array[r.id] and j.bulk_id = p_bulk_id)
  order by r.id);
v_did := millrace.in_halves(v_still::text[], format(
  'select cardinality($1::bigint[]) from millrace.do_to_runs($1::bigint[], %L)', v_bulk.args),
  'infinity');
v_done := array(
  select s.id from unnest(v_still) s(id)
  where s.id not in (select f.key::bigint from unnest(v_did.refused) f));
v_faults := array(
  select jsonb_build_object(
    'run', f.key::bigint, 'code', f.code, 'message', millrace.cut_text(f.why, 1000))
  from unnest(v_did.refused) f
  where not f.later
    -- A run that has gone on past the stage is passed over. A run that has yet to come to the
    -- stage, or whose version lacks the stage, is a fault.
    and not (f.code = 'MR004' and (
      select millrace.state_of(f.key::bigint, t.id)
      from millrace.stages t
      where t.pipeline_id = v_bulk.pipeline_id and t.name = v_bulk.args ->> 'stage')
      is distinct from 'pending'));
v_locked := array(
  select f.key::bigint
  from unnest(v_did.refused) f
  where f.later
  union all
  select r.id from millrace.runs r where r.id = any (v_wanted) and r.id <> all (v_free));
perform millrace.note(v_verb, v_pipeline, v_bulk.args ->> 'stage', v_done,
  jsonb_build_object('subject', v_bulk.subject, 'key', v_bulk.key, 'reason', v_bulk.reason,
    'filter', v_bulk.filter, 'bulk_id', p_bulk_id))
where v_done <> '{}';
update millrace.bulks b
set cursor = coalesce(v_found.next, '0'), locked = b.locked[201:] || v_locked,
  slices = b.slices + 1, tried = coalesce(v_still[p_most], b.tried),
  done = b.done + cardinality(v_done),
  faults = b.faults + cardinality(v_faults),
  faults_by_run = (b.faults_by_run || v_faults)[:100],
  passed_over = b.passed_over + cardinality(v_wanted) - cardinality(v_done)
    - cardinality(v_locked) - cardinality(v_faults)
where b.id = p_bulk_id
returning b.* into v_bulk;
if v_found.next is null and v_bulk.locked = '{}' then
  return millrace.end_bulk(p_bulk_id, 'done');
end if;
return v_bulk;
$$;
