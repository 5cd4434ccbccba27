-- Recording a batch
--
-- A judged batch goes through the transitions (complete.sql, fail.sql, transitions.sql), each group
-- of one stage and outcome at once, in the caller's one transaction. One bad item never sinks the
-- others: a batch that raises is halved until the guilty item stands alone. What the server says of
-- itself (log.sql, error_kind) ends the whole call.

-- Records a judged batch, each group of one stage and outcome by its transition. Returns the items,
-- with late ones marked, and the stages that have work now. p_uniform_limit is what
-- lock_uniform_batch() has returned for a batch that goes the fast way; then no items come back.
-- Failures come last: one may end a run and so cancel what other items of the batch are about,
-- which is then too late for them.
create function millrace.apply_outcomes(
  p_items millrace.work[], p_uniform_limit int default null,
  out items millrace.work[], out ready int[]
)
language plpgsql
as $$
declare
  v_group record;
  v_left record;
begin
  if p_uniform_limit is not null then
    ready := millrace.complete(p_items[1].stage_id, p_items, p_uniform_limit);
    return;
  end if;
  items := p_items;
  ready := '{}';
  for v_group in
    select i.stage_id, i.outcome, array_agg(i order by i.ord) as items,
      row_number() over (order by i.outcome = 'failed', i.stage_id, i.outcome) as place
    from unnest(p_items) i
    where i.verdict is null
    group by i.stage_id, i.outcome
    order by 4
  loop
    if v_group.place > 1 then
      v_left := millrace.without_late(items, v_group.items);
      items := v_left.all_items;
      v_group.items := v_left.in_time;
    end if;
    -- What apply writes counts: it may have started a stage over, or deleted the entity.
    if v_group.outcome = 'completed' and cardinality(v_group.items) > 0
      and millrace.apply_results(v_group.stage_id, v_group.items) then
      v_left := millrace.without_late(items, v_group.items);
      items := v_left.all_items;
      v_group.items := v_left.in_time;
    end if;
    continue when cardinality(v_group.items) = 0;
    case v_group.outcome
      when 'completed' then
        ready := ready || millrace.hook_complete(v_group.stage_id, v_group.items);
      when 'failed' then ready := ready || millrace.fail(v_group.stage_id, v_group.items);
      when 'released' then ready := ready || millrace.release(v_group.stage_id, v_group.items);
      when 'waiting' then perform millrace.wait(v_group.stage_id, v_group.items);
    end case;
  end loop;
end
$$;

-- Finds the attempts of unrecorded items whose state is no longer what was judged.
create function millrace.late_attempts(p_items millrace.work[]) returns bigint[]
language plpgsql volatile
as $$
begin
  return array(
    select i.attempt_id
    from unnest(p_items) i
    left join millrace.attempts a on a.id = i.attempt_id
    where i.verdict is null and a.state is distinct from i.was);
end
$$;

-- Marks items as stale that an earlier group of the same batch cancelled.
create function millrace.mark_late(p_items millrace.work[], p_late bigint[])
returns millrace.work[]
language plpgsql
as $$
begin
  for v_i in 1 .. cardinality(p_items) loop
    if p_items[v_i].attempt_id = any (p_late) then
      p_items[v_i].verdict := 'stale';
      p_items[v_i].reason := 'the attempt was cancelled by what else the same call did';
    end if;
  end loop;
  return p_items;
end
$$;

-- Marks those of a group as stale that are too late now, and returns the rest of the group.
create function millrace.without_late(
  p_all millrace.work[], p_group millrace.work[],
  out all_items millrace.work[], out in_time millrace.work[]
)
language plpgsql
as $$
declare
  v_late bigint[] := millrace.late_attempts(p_group);
begin
  all_items := p_all;
  in_time := p_group;
  if cardinality(v_late) > 0 then
    all_items := millrace.mark_late(p_all, v_late);
    in_time := array(
      select i from unnest(p_group) i where i.attempt_id <> all (v_late));
  end if;
end
$$;

-- Marks items as busy that the database could not record now, and reports the first. Nothing of
-- such an item was recorded: a worker sends it again shortly, a callback is asked for once more,
-- and the sweep comes by again.
create function millrace.put_off(p_items millrace.work[], p_why text)
returns millrace.work[]
language plpgsql
as $$
declare
  v_first millrace.work;
  v_stage record;
begin
  for v_i in 1 .. cardinality(p_items) loop
    continue when p_items[v_i].verdict is not null;
    if v_first.attempt_id is null then
      v_first := p_items[v_i];
    end if;
    p_items[v_i].verdict := 'busy';
    p_items[v_i].reason := p_why;
  end loop;
  if v_first.attempt_id is not null then
    select s.name, p.name as pipeline into v_stage
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = v_first.stage_id;
    perform millrace.report_passed_over(
      v_stage.pipeline, v_stage.name, v_first.entity_id, p_why);
  end if;
  return p_items;
end
$$;

-- Reports a row that was left for later since the database said to try again: once an hour for each
-- stage, since the next sweep may well find the same.
create function millrace.report_passed_over(
  p_pipeline text, p_stage text, p_entity_id text, p_why text
) returns void
language plpgsql
as $$
begin
  if not exists (
      select from millrace.log l
      where l.code = 'row_passed_over'
        and l.at > millrace.now() - interval '1 hour'
        and l.detail ->> 'pipeline' = p_pipeline
        and l.detail ->> 'stage' is not distinct from p_stage) then
    insert into millrace.log (level, code, message, detail)
    values ('warning', 'row_passed_over',
      format('Row %s of pipeline %s is passed over, and perhaps others: %s',
        p_entity_id, p_pipeline, p_why),
      jsonb_build_object('pipeline', p_pipeline, 'stage', p_stage, 'entity_id', p_entity_id));
  end if;
end
$$;

-- Records a single item, at the second try without showing it: the engine's word counts, even where
-- a user's own trigger refuses every write to the entity. Reports that refusal.
create function millrace.apply_outcomes_unprojected(
  p_items millrace.work[], out items millrace.work[], out ready int[]
)
language plpgsql
as $$
declare
  v_context text;
  v_why text;
begin
  for v_try in 1 .. 2 loop
    begin
      perform set_config('millrace.projection_off', case v_try when 2 then 'on' else '' end, true);
      select s.items, s.ready into items, ready from millrace.apply_outcomes(p_items) s;
      perform set_config('millrace.projection_off', '', true);
      return;
    exception when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if millrace.error_kind(sqlstate, v_context) = 'fatal' then
        raise;
      end if;
      v_why := sqlerrm;
      exit when millrace.error_kind(sqlstate, v_context) = 'transient';
      if v_try = 1 then
        perform millrace.report('error', 'projection_failed',
          'An entity refuses the projection: ' || sqlerrm,
          jsonb_build_object('entity_id', p_items[1].entity_id));
      end if;
    end;
  end loop;
  items := millrace.put_off(p_items, v_why);
  ready := '{}';
end
$$;

-- Records a part of a batch that raised as two parts, with little patience for locks. In no order
-- where the database says to try again: the time that is spent on those that it refuses is bounded,
-- and what is left when it is over differs from call to call. One part is always tried, so each
-- call may get on.
create function millrace.apply_outcomes_in_halves(
  p_items millrace.work[], p_until timestamptz, p_transient boolean,
  out items millrace.work[], out ready int[]
)
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_items) / 2;
  v_left record;
  v_right record;
  v_rest millrace.work[];
begin
  if p_transient then
    p_items := array(select i from unnest(p_items) i order by random());
  end if;
  v_left := millrace.apply_outcomes_guarded(p_items[:v_half], p_until => p_until);
  v_rest := p_items[v_half + 1:];
  v_rest := millrace.mark_late(v_rest, millrace.late_attempts(v_rest));
  if p_transient and millrace.now() >= p_until then
    items := v_left.items
      || millrace.put_off(v_rest, 'others of the same call took too long');
    ready := v_left.ready;
    return;
  end if;
  v_right := millrace.apply_outcomes_guarded(v_rest, p_until => p_until);
  items := v_left.items || v_right.items;
  ready := v_left.ready || v_right.ready;
end
$$;

-- Does what apply_outcomes() does, but an item that makes Postgres raise fails alone with the SQL
-- error, or is busy where that says to try again; the items then come back. Of a uniform batch that
-- raises anything, MR000 of complete() included, neither items nor stages come back and nothing is
-- recorded, since its items have yet to be fenced one by one. p_until bounds the time for what the
-- database refuses for now.
create function millrace.apply_outcomes_guarded(
  p_items millrace.work[], p_uniform_limit int default null,
  p_until timestamptz default millrace.now() + interval '2 seconds',
  out items millrace.work[], out ready int[]
)
language plpgsql
as $$
declare
  v_done record;
  v_context text;
  v_transient boolean;
  v_why text;
  v_error jsonb;
begin
  begin
    v_done := millrace.apply_outcomes(p_items, p_uniform_limit);
    items := v_done.items;
    ready := v_done.ready;
    return;
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    -- Nobody has checked the items of a uniform batch one by one: the caller goes back and does so.
    if p_uniform_limit is not null then
      return;
    end if;
    v_transient := millrace.error_kind(sqlstate, v_context) = 'transient';
    v_why := sqlerrm;
    v_error := jsonb_build_object('code', 'sql_' || sqlstate,
      'message', 'the database refused to record this (sql_' || sqlstate || ')',
      'detail', sqlerrm,
      'permanent', left(sqlstate, 2) in ('22', '23'));
  end;
  if v_transient and cardinality(p_items) = 1 then
    items := millrace.put_off(p_items, v_why);
    ready := '{}';
  elsif cardinality(p_items) = 1 then
    p_items[1].outcome := 'failed';
    p_items[1].error := v_error;
    p_items[1].reason := v_why;
    v_done := millrace.apply_outcomes_unprojected(p_items);
    items := v_done.items;
    ready := v_done.ready;
  else
    v_done := millrace.apply_outcomes_in_halves(p_items, p_until, v_transient);
    items := v_done.items;
    ready := v_done.ready;
  end if;
end
$$;
