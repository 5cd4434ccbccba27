-- Bulks: a verb over all runs that match a filter
--
-- What is begun is worked off in slices, in the order of the runs' ids, by `continue` and by the
-- sweep. Each writes in its transaction how far it has come, so that it comes to no run twice.

-- Shows a bulk.
create function millrace.bulk_json(p_bulk millrace.bulks) returns jsonb
language sql stable
as $$
  select jsonb_strip_nulls(
    to_jsonb(p_bulk) - '{id,verb,args,conditions,pipeline_id,subject,key,last_run_id,next_run_id,
      slices,created_at,worked_at}'::text[] || jsonb_build_object(
      'bulk', p_bulk.id, 'do', p_bulk.args, 'by', p_bulk.subject,
      'held', cardinality(p_bulk.held),
      'faults_by_run', (
        select jsonb_agg(to_jsonb(f))
        from (
          select o.run_id as run, o.code, o.message
          from millrace.bulk_faults o
          where o.bulk_id = p_bulk.id
          order by o.run_id
          limit 100) f)))
$$;

-- Writes the row of a bulk, which freezes its filter, and counts what it would meet.
create function millrace.preview_bulk(
  p_caller millrace.caller,
  p_do jsonb,
  p_filter jsonb,
  p_reason text)
returns millrace.bulks
as $$
declare
  v_verb text := p_do ->> 'verb';
  v_now timestamptz := millrace.now();
  v_last bigint := coalesce((select max(r.id) from millrace.runs r), 0);
  v_filter jsonb;
  v_conditions jsonb;
  v_runs bigint[] := '{}';
  v_next text := '0';
  v_found record;
  v_bulk millrace.bulks;
begin
  perform millrace.check_request(p_do, '{"verb": ["retry", "cancel", "reset", "skip", "fail",
    "hurry"], "stage": "name", "message": "reason", "permanent": "boolean"}', 'do');
  perform millrace.need_fields(p_do, 'verb');
  perform millrace.need_fields(p_do, 'stage') where v_verb in ('skip', 'fail');
  perform millrace.check_request(p_filter, millrace.filter_fields(), 'filter');
  if not p_filter ? 'pipeline' then
    raise exception 'filter.pipeline is missing, but a bulk is about one pipeline'
      using errcode = 'MR002', hint = 'Set it; nothing was done.';
  elsif not p_filter ? 'status' and v_verb = 'reset' then
    raise exception 'filter.status is missing, but a reset takes up runs that are over, too'
      using errcode = 'MR002', hint = 'Say which: running, completed, failed or cancelled.';
  end if;
  -- Up to now, this very moment included.
  v_filter := jsonb_build_object(
      'status', case when v_verb = 'retry' then 'failed' else 'running' end)
    || p_filter || jsonb_build_object('before', least(
      (p_filter ->> 'before')::timestamptz, v_now + interval '1 microsecond'));
  v_conditions := millrace.read_filter(p_caller, v_filter)
    || jsonb_build_object('last_run_id', v_last);
  if p_do ? 'stage' then
    perform millrace.stage_named(p_filter ->> 'pipeline', p_do ->> 'stage');
  end if;
  -- Whether there are more than 25 looks tell it leaves open.
  for v_look in 1 .. 25 loop
    v_found := millrace.find_runs(
      v_conditions, v_next, 10000 - cardinality(v_runs), p_up => true);
    v_runs := v_runs || v_found.run_ids;
    v_next := v_found.next;
    exit when v_next is null or cardinality(v_runs) = 10000;
  end loop;
  insert into millrace.bulks (
    verb, args, filter, conditions, pipeline_id, subject, key, last_run_id, preview, reason,
    created_at)
  select v_verb, p_do, v_filter, v_conditions, (v_conditions #>> '{pipeline_ids,0}')::int,
    p_caller.subject, p_caller.key, v_last, jsonb_build_object(
      'runs', to_char(count(*), 'FM99,999') || case when v_next is null then '' else '+' end,
      'oldest', min(coalesce(r.finished_at, r.created_at)),
      'newest', max(coalesce(r.finished_at, r.created_at))), p_reason, v_now
  from millrace.runs r
  where r.id = any (v_runs)
  returning * into v_bulk;
  return v_bulk;
end
$$;

-- Previews, begins, continues or aborts a bulk. `continue` shows one that does not run. Whoever
-- begins it is the operator of its slices.
create function millrace.act_in_bulk(p_caller millrace.caller, p_request jsonb)
returns jsonb
as $$
declare
  v_verb text := p_request ->> 'verb';
  v_bulk millrace.bulks;
begin
  if v_verb = 'preview' then
    perform millrace.need_fields(p_request, 'do', 'filter');
    v_bulk := millrace.preview_bulk(
      p_caller, p_request -> 'do', p_request -> 'filter', p_request ->> 'reason');
  else
    perform millrace.need_fields(p_request, 'bulk');
    select b.* into v_bulk
    from millrace.bulks b
    join millrace.pipelines p on p.id = b.pipeline_id
    where b.id = (p_request ->> 'bulk')::bigint
      and millrace.sees(p_caller, p.name)
    for no key update of b;
  end if;
  if v_bulk.id is null then
    raise exception 'there is no bulk % that you see', p_request ->> 'bulk'
      using errcode = 'MR003', hint = 'Those that run are in millrace_overview().';
  elsif v_verb = 'begin' and v_bulk.state <> 'previewed'
    or v_verb = 'abort' and v_bulk.state in ('done', 'aborted') then
    raise exception 'bulk % cannot be %: it is %', v_bulk.id,
      case when v_verb = 'begin' then 'begun' else 'aborted' end, v_bulk.state
      using errcode = 'MR004', hint = case v_bulk.state
        when 'running' then 'It is under way: continue helps it on, abort ends it.'
        else 'Preview it anew.'
      end;
  elsif v_verb = 'begin' then
    update millrace.bulks b
    set state = 'running', subject = p_caller.subject, key = p_caller.key,
      began_at = millrace.now(), reason = coalesce(p_request ->> 'reason', b.reason)
    where b.id = v_bulk.id
    returning b.* into v_bulk;
  elsif v_verb = 'abort' then
    update millrace.bulks b
    set state = 'aborted', ended_at = millrace.now(), why = p_request ->> 'reason'
    where b.id = v_bulk.id
    returning b.* into v_bulk;
  elsif v_verb = 'continue' then
    v_bulk := millrace.work_slice(v_bulk.id);
  end if;
  return jsonb_build_object(
    'pipeline', v_bulk.filter ->> 'pipeline', 'stage', v_bulk.args ->> 'stage',
    'filter', v_bulk.filter, 'bulk_id', v_bulk.id, 'outcome', millrace.bulk_json(v_bulk));
end
$$;

-- Works off the next slice of a bulk, unless somebody else is doing so. It waits for nobody: what
-- is held comes with a later slice. What matches no more under the locks, or cannot go on, is
-- passed over.
create function millrace.work_slice(p_bulk_id bigint) returns millrace.bulks
set lock_timeout = '200ms'
as $$
declare
  v_bulk millrace.bulks;
  v_found record;
  v_wanted bigint[];
  v_entities text[];
  v_free bigint[];
  v_still bigint[];
  v_did record;
  v_met record;
  v_over boolean;
begin
  select b.* into v_bulk
  from millrace.bulks b
  where b.id = p_bulk_id
  for no key update skip locked;
  if v_bulk.state is distinct from 'running' then
    return (select b from millrace.bulks b where b.id = p_bulk_id);
  elsif v_bulk.key = 'user' and not exists (
      select
      from millrace.operators o
      join millrace.pipelines p on p.id = v_bulk.pipeline_id
      where o.subject = v_bulk.subject
        and o.role = 'operator'
        and (o.pipelines is null or p.name = any (o.pipelines))) then
    update millrace.bulks b
    set state = 'aborted', ended_at = millrace.now(), why = b.subject || ' may no longer act here'
    where b.id = p_bulk_id
    returning b.* into v_bulk;
    return v_bulk;
  end if;
  -- A verb that goes run by run takes longer than the Data API gives 500 of them.
  v_found := millrace.find_runs(v_bulk.conditions, v_bulk.next_run_id::text,
    case when v_bulk.verb in ('retry', 'cancel') then 500 else 100 end, p_up => true);
  v_wanted := v_bulk.held[:200] || v_found.run_ids;
  v_entities := millrace.lock_entities(v_bulk.pipeline_id, array(
    select r.entity_id from millrace.runs r where r.id = any (v_wanted)), false);
  v_free := array(
    select r.id
    from millrace.runs r
    where r.id = any (v_wanted) and r.entity_id = any (v_entities)
    order by r.id
    for no key update skip locked);
  v_still := array(
    select r.id
    from unnest((millrace.find_runs(v_bulk.conditions || jsonb_build_object('runs', v_free),
      null, cardinality(v_free) + 1, p_up => true)).run_ids) s(id)
    join millrace.runs r on r.id = s.id
    left join millrace.fan_outs f on f.id = r.fan_out_id and f.state in ('abandoned', 'closed')
    where v_bulk.verb = 'cancel' or f.id is null and millrace.is_latest_run(r.id)
    order by r.id);
  v_did := millrace.in_halves(v_still::text[], format(
    'select cardinality($1::bigint[]) from millrace.do_to_runs($1::bigint[], %L)', v_bulk.args),
    'infinity');
  with met as (
    select w.id, u.code, u.why, case
        when u.later then 'held'
        when u.id is not null then 'fault'
        when w.id = any (v_still) then 'done'
        -- Nobody holds a row that is gone, past its triggers: its run is passed over.
        when w.id <> all (v_free) and (millrace.sizes_of_entities(v_bulk.pipeline_id, array(
          select r.entity_id from millrace.runs r where r.id = w.id)))[1] is not null then 'held'
        else 'passed over'
      end as what
    from unnest(v_wanted) w(id)
    left join unnest(v_did.refused::bigint[], v_did.codes, v_did.why, v_did.later)
      u(id, code, why, later) on u.id = w.id
  ), faulty as (
    insert into millrace.bulk_faults (bulk_id, run_id, code, message)
    select p_bulk_id, m.id, m.code, millrace.cut_text(m.why, 1000) from met m where m.what = 'fault'
  )
  select array(select m.id from met m where m.what = 'done' order by m.id) as done,
    v_bulk.held[201:] || array(select m.id from met m where m.what = 'held') as held,
    count(*) filter (where m.what = 'fault') as faults,
    count(*) filter (where m.what = 'passed over') as passed_over
  into v_met
  from met m;
  if cardinality(v_still) > 0 then
    perform millrace.note(v_bulk.verb, v_bulk.filter ->> 'pipeline', v_bulk.args ->> 'stage',
      v_met.done, jsonb_build_object('subject', v_bulk.subject, 'key', v_bulk.key,
        'reason', v_bulk.reason, 'filter', v_bulk.filter, 'bulk_id', v_bulk.id,
        'outcome', jsonb_build_object(
          'faults', v_met.faults, 'held', cardinality(v_met.held))));
  end if;
  v_over := cardinality(v_met.held) = 0
    and coalesce(v_found.next::bigint >= v_bulk.last_run_id, true);
  update millrace.bulks b
  set next_run_id = coalesce(v_found.next::bigint, b.last_run_id), held = v_met.held,
    worked_at = millrace.now(), slices = b.slices + 1, done = b.done + cardinality(v_met.done),
    faults = b.faults + v_met.faults, passed_over = b.passed_over + v_met.passed_over,
    state = case when v_over then 'done' else b.state end,
    ended_at = case when v_over then millrace.now() end
  where b.id = p_bulk_id
  returning b.* into v_bulk;
  return v_bulk;
end
$$;
