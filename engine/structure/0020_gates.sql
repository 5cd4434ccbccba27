-- Gates, which the database passes; and which stages are held back by which.

alter table millrace.stages
  drop constraint stages_kind_known,
  add constraint stages_kind_known check (kind in (
    'function', 'external', 'manual', 'pipeline', 'map', 'agent', 'gate'));
comment on column millrace.stages.function_name is
  'The Edge Function that runs it; null for the kinds manual, pipeline and gate, which none runs.';

create table millrace.back_pressures (
  stage_id int not null
    constraint back_pressures_stage_fkey references millrace.stages on delete cascade,
  later_id int not null
    constraint back_pressures_later_fkey references millrace.stages on delete cascade,
  backlog int not null constraint back_pressures_backlog_bounds check (backlog >= 1),
  on_the_way int[] not null default '{}',
  constraint back_pressures_pkey primary key (stage_id, later_id)
);
create index back_pressures_by_later on millrace.back_pressures (later_id, stage_id);
comment on table millrace.back_pressures is
  'Which stage is held back by which later one, as the definitions say. backlog: how many may be '
  'unfinished at the later one and on the way to it.';
comment on column millrace.back_pressures.on_the_way is
  'The stages between the two, from which work comes to the later one without another check.';

insert into millrace.back_pressures (stage_id, later_id, backlog)
select s.id, l.id, greatest((s.limits #>> '{back_pressure,backlog}')::int, 1)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
join millrace.pipelines q on q.name = case
  when s.limits #>> '{back_pressure,stage}' like '%.%'
    then split_part(s.limits #>> '{back_pressure,stage}', '.', 1)
  else p.name
end
join millrace.stages l
  on l.pipeline_id = q.id
  and l.name = regexp_replace(s.limits #>> '{back_pressure,stage}', '^.*\.', '')
where s.limits ? 'back_pressure';
update millrace.back_pressures b
set on_the_way = array(
  select m.stage_id
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  join millrace.version_stages f on f.version_id = p.current_version_id and f.stage_id = s.id
  join millrace.version_stages m
    on m.version_id = f.version_id and m.stage_id = any (f.dependents)
  where s.id = b.stage_id
    and b.later_id = any (m.dependents)
    and not exists (
      select
      from millrace.back_pressures h
      where h.later_id = b.later_id
        and (h.stage_id = m.stage_id or h.stage_id = any (m.dependents)))
  order by m.stage_id)
where b.on_the_way = '{}';

-- What waits at a stage, for back pressure to count.
create index attempts_waiting on millrace.attempts (stage_id) where deadline_at is not null;
