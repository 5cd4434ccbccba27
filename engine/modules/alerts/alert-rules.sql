-- Rules: when an alert is raised and resolved. rule-values.sql measures the value of each kind.
--
--   above its bound ──for `hold`──▶ raised ──not above for `recover`──▶ resolved
--          └── not above before `hold` is over: no alert
--
-- A rule without a pipeline applies to each pipeline that has no rule of the same name.

-- Raises MR002 for a rule whose fields do not go together or are out of bounds, and MR003 for an
-- unknown pipeline or stage.
create function millrace.check_rule() returns trigger
as $$
perform millrace.refuse('rule ' || new.name || ': ' || case
  when (new.above is null) <> (new.kind in ('run_sla', 'late', 'engine')) then
    'above is missing, or is not to be given: run_sla, late and engine alone know their own bound'
  when new.above < 0 or new.above = 'NaN' or new.kind = 'error_share' and new.above >= 1 then
    format('above is %s, but must be 0 or more, for error_share a share below 1', new.above)
  when new.kind = 'engine' and new.pipeline is not null
      or new.kind in ('engine', 'run_sla') and new.stage is not null then
    'kind engine looks at all there is, run_sla at a pipeline end to end: leave out what is less'
  when new.stage <> '*' and new.pipeline is null then
    format('stage is %s, but no pipeline is named: name it, or use *', new.stage)
  when new.span not between interval '1 minute' and interval '7 days'
      or greatest(new.hold, new.recover) > interval '1 day'
      or least(new.hold, new.recover) < interval '0'
      or new.least < 1 then
    format('span is %s, hold %s, recover %s, least %s, but must be from 1 minute to 7 days, '
      'up to 1 day, up to 1 day, and 1 or more', new.span, new.hold, new.recover, new.least)
end, 'See docs/alerting.md. The rules stay as they were.', 'MR002');
if new.stage <> '*' then
  perform millrace.stage_named(new.pipeline, new.stage);
elsif new.pipeline is not null then
  perform millrace.pipeline_named(new.pipeline);
end if;
return new;
$$;

create trigger alert_rules_are_checked
before insert or update on millrace.alert_rules
for each row execute function millrace.check_rule();

-- Saves the rules of a definition, and deletes rules that the definition no longer has. A changed
-- rule stays the same row, since the sweep may just write states that refer to the row.
create function millrace.save_alerts(p_definition jsonb)
as $$
delete from millrace.alert_rules r
where r.pipeline = p_definition ->> 'pipeline' and r.source = 'definition'
  and (p_definition -> 'rules' @> jsonb_build_array(
    jsonb_build_object('name', r.name))) is not true;
perform millrace.put_rows('millrace.alert_rules', 'pipeline, name', 'kind, stage, above, span, '
  'hold, recover, least, channels, playbook, enabled, source', p_definition -> 'rules');
$$;

-- Measures a rule, saves where it is above its bound, and raises an alert where it has been so for
-- the rule's hold. Deletes the state of a rule that has not been above its bound for the rule's
-- recover, or that has no open alert.
-- While an alert recovers, failures of another code resolve it and raise another alert, since no
-- message has named that code. A code that had an alert within the span raises none: two codes in
-- turns would otherwise send two messages a minute.
create function millrace.evaluate_rule(p_rule millrace.alert_rules, p_now timestamptz)
as $$
with over as materialized (
  select v.* from millrace.rule_values(p_rule, p_now) v where v.value > v.above
), other as (
  update millrace.alerts a
  set resolved_at = p_now
  from over o
  join millrace.rule_states t on t.rule_id = p_rule.id and t.below_since is not null
    and (t.pipeline_id, t.stage_id) = (o.pipeline_id, o.stage_id)
  where p_rule.kind in ('error_share', 'dead')
    and (a.rule_id, a.pipeline_id, a.stage_id) = (p_rule.id, o.pipeline_id, o.stage_id)
    and a.resolved_at is null and coalesce(a.detail, '') <> o.detail
    and not exists (
      select from millrace.alerts b
      where (b.rule_id, b.pipeline_id, b.stage_id) = (a.rule_id, a.pipeline_id, a.stage_id)
        and b.detail = o.detail and b.raised_at > p_now - p_rule.span)
  returning a.pipeline_id, a.stage_id
), kept as (
  insert into millrace.rule_states as t (
    rule_id, pipeline_id, stage_id, over_since, value, above, detail)
  select p_rule.id, o.pipeline_id, o.stage_id, p_now, o.value, o.above, o.detail
  from over o
  on conflict on constraint rule_states_pkey do update
  set below_since = null, value = excluded.value, above = excluded.above,
    detail = excluded.detail, over_since = case
      -- The rule was above its bound for p_rule.hold before the former alert already.
      when (t.pipeline_id, t.stage_id) in (select n.pipeline_id, n.stage_id from other n)
        then p_now - p_rule.hold
      else t.over_since end
)
update millrace.rule_states t
set below_since = coalesce(t.below_since, p_now)
where t.rule_id = p_rule.id
  and (t.pipeline_id, t.stage_id) not in (select o.pipeline_id, o.stage_id from over o);
insert into millrace.alerts (rule_id, pipeline_id, stage_id, rule, kind, pipeline, stage,
  value, above, detail, span, playbook, channels, since, raised_at)
select p_rule.id, t.pipeline_id, t.stage_id, p_rule.name, p_rule.kind, p.name, s.name, t.value,
  t.above, t.detail, p_rule.span, p_rule.playbook, p_rule.channels, t.over_since, p_now
from millrace.rule_states t
left join millrace.pipelines p on p.id = t.pipeline_id
left join millrace.stages s on s.id = t.stage_id
where t.rule_id = p_rule.id and t.below_since is null
  and t.over_since + p_rule.hold <= p_now
order by p.name, s.id
on conflict do nothing;
delete from millrace.rule_states t
where t.rule_id = p_rule.id and t.below_since is not null
  and (t.below_since + p_rule.recover <= p_now or not exists (
    select from millrace.alerts a
    where (a.rule_id, a.pipeline_id, a.stage_id) = (t.rule_id, t.pipeline_id, t.stage_id)
      and a.resolved_at is null));
$$;

-- Evaluates all enabled rules, once a minute at most, resolves alerts without a rule's state, and
-- writes messages. A rule that raises an error is logged; the other rules and the sweep go on.
-- p_kind: evaluates the rules of this kind alone, at any time; null means all kinds.
create function millrace.evaluate_rules(p_kind text default null)
as $$
  v_minute text := to_char(v_now at time zone 'utc', 'YYYY-MM-DD HH24:MI');
  v_rule millrace.alert_rules;

-- Compares the minutes by inequality: after the clock was set back the rules are still evaluated.
update millrace.settings s
set value = v_minute
where s.name in (
  select o.name
  from millrace.settings o
  where o.name = 'rules_judged_at' and o.value <> v_minute
  for update skip locked)
  and p_kind is null;
if not found and p_kind is null then
  return;
end if;
for v_rule in
  select r.*
  from millrace.alert_rules r
  where r.enabled
    and r.kind = coalesce(p_kind, r.kind)
    -- After the sweep stood still, rules of the kind unattended are left out once: functions have
    -- yet to answer the wake-ups that this sweep has just sent.
    and (r.kind <> 'unattended' or millrace.last_sweep() > v_now - interval '1 minute')
  order by r.id
loop
  begin
    perform millrace.evaluate_rule(v_rule, v_now);
  exception when others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'rule_failed', format(
        'Rule %s of %s cannot be judged: %s', v_rule.name,
        coalesce(v_rule.pipeline, 'all pipelines'), sqlerrm)) then
      raise;
    end if;
  end;
end loop;
delete from millrace.rule_states t
using millrace.alert_rules r
where r.id = t.rule_id and not r.enabled;
update millrace.alerts a
set resolved_at = v_now
where a.resolved_at is null
  and not exists (
    select from millrace.rule_states t
    where (t.rule_id, t.pipeline_id, t.stage_id) = (a.rule_id, a.pipeline_id, a.stage_id));
perform millrace.write_messages(v_now);
$$;
