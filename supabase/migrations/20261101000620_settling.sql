-- Chapter 11: settling a batch
--
-- A judged batch goes through the transitions of the chapter before, each group of one stage and outcome at once, in the
-- caller's one transaction. One bad item never sinks the others: a batch that raises is halved until the guilty item
-- stands alone.

-- Runs a judged batch through its transitions; ready are the stages that have work now. Failures come last: one may end a
-- run and so cancel what other items of the batch are about, which is then too late for them.
create function pipeline.settle(p_items pipeline.work[], p_alike boolean default false, out items pipeline.work[], out ready int[])
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_late bigint[];
begin
  if p_alike then
    ready := pipeline.complete(p_items[1].stage_id, p_items);
    return;
  end if;
  items := p_items;
  ready := '{}';
  for v_group in
    select i.stage_id, i.outcome, array_agg(i order by i.ord) as items, row_number() over (order by i.outcome = 'failed', i.stage_id, i.outcome) as place
    from unnest(p_items) i where i.verdict is null
    group by i.stage_id, i.outcome order by 4
  loop
    if v_group.place > 1 then
      v_late := pipeline.late_attempts(v_group.items);
      if cardinality(v_late) > 0 then
        items := pipeline.mark_late(items, v_late);
        v_group.items := array(select i from unnest(v_group.items) i where i.attempt_id <> all (v_late));
        continue when cardinality(v_group.items) = 0;
      end if;
    end if;
    case v_group.outcome
      when 'completed' then
        -- What apply writes counts: it may have started a stage over, or deleted the entity.
        if pipeline.apply_results(v_group.stage_id, v_group.items) then
          v_late := pipeline.late_attempts(v_group.items);
          items := pipeline.mark_late(items, v_late);
          v_group.items := array(select i from unnest(v_group.items) i where i.attempt_id <> all (v_late));
          continue when cardinality(v_group.items) = 0;
        end if;
        ready := ready || pipeline.complete(v_group.stage_id, v_group.items);
      when 'failed' then ready := ready || pipeline.fail(v_group.stage_id, v_group.items);
      when 'released' then ready := ready || pipeline.release(v_group.stage_id, v_group.items);
      when 'waiting' then perform pipeline.wait(v_group.stage_id, v_group.items);
    end case;
  end loop;
end
$$;
comment on function pipeline.settle(pipeline.work[], boolean) is 'Records a judged batch, each group of one stage and outcome by its transition; returns the items with late ones marked, and the stages with work. p_alike: all of it was completed at one stage without an apply function; then no items come back.';

create function pipeline.late_attempts(p_items pipeline.work[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(select i.attempt_id from unnest(p_items) i left join pipeline.attempts a on a.id = i.attempt_id where i.verdict is null and a.state is distinct from i.was);
end
$$;
comment on function pipeline.late_attempts(pipeline.work[]) is 'Attempts of unsettled items whose state is no longer what was judged.';

create function pipeline.mark_late(p_items pipeline.work[], p_late bigint[]) returns pipeline.work[]
language plpgsql set search_path = pg_catalog, pg_temp
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
comment on function pipeline.mark_late(pipeline.work[], bigint[]) is 'Marks items as stale that an earlier group of the same batch cancelled.';

-- The engine's word counts, even where a user's own trigger refuses every write to the entity.
create function pipeline.settle_unprojected(p_items pipeline.work[], out items pipeline.work[], out ready int[])
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  select s.items, s.ready into items, ready from pipeline.settle(p_items) s;
exception
  when serialization_failure or deadlock_detected or lock_not_available or query_canceled or admin_shutdown or insufficient_resources then
    raise;
  when others then
    perform pipeline.report('error', 'projection_failed', 'An entity refuses the projection: ' || sqlerrm, jsonb_build_object('entity_id', p_items[1].entity_id));
    perform set_config('pipeline.projection_off', 'on', true);
    select s.items, s.ready into items, ready from pipeline.settle(p_items) s;
    perform set_config('pipeline.projection_off', '', true);
end
$$;
comment on function pipeline.settle_unprojected(pipeline.work[]) is 'settle() of a single item that goes on without the projection when the entity refuses it, and reports that.';

-- As settle(), but one bad item never sinks the others: a batch that raises is halved until the guilty item stands alone,
-- which then fails with the SQL error. Errors that say "try again" are raised to the caller.
create function pipeline.settle_guarded(p_items pipeline.work[], p_alike boolean default false, out items pipeline.work[], out ready int[])
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_half int := cardinality(p_items) / 2;
  v_error jsonb;
  v_done record;
  v_left record;
  v_right record;
  v_rest pipeline.work[];
begin
  begin
    v_done := pipeline.settle(p_items, p_alike);
    items := v_done.items;
    ready := v_done.ready;
    return;
  exception
    when serialization_failure or deadlock_detected or lock_not_available or query_canceled or admin_shutdown or insufficient_resources then
      raise;
    when others then
      v_error := jsonb_build_object('code', 'sql_' || sqlstate, 'message', sqlerrm, 'permanent', left(sqlstate, 2) in ('22', '23'));
  end;
  if v_half = 0 then
    p_items[1].outcome := 'failed';
    p_items[1].error := v_error;
    p_items[1].reason := v_error ->> 'message';
    select s.items, s.ready into items, ready from pipeline.settle_unprojected(p_items) s;
  else
    select s.items, s.ready into v_left from pipeline.settle_guarded(p_items[:v_half]) s;
    v_rest := p_items[v_half + 1:];
    select s.items, s.ready into v_right from pipeline.settle_guarded(pipeline.mark_late(v_rest, pipeline.late_attempts(v_rest))) s;
    items := v_left.items || v_right.items;
    ready := v_left.ready || v_right.ready;
  end if;
end
$$;
comment on function pipeline.settle_guarded(pipeline.work[], boolean) is 'settle() in which an item that makes Postgres raise fails alone, with the SQL error; the items then come back, also of a batch that was alike.';

revoke all on all functions in schema pipeline from public;
