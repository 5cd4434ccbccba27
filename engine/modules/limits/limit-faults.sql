-- Finds limits that hold for other stages than name them.
create view millrace.limit_faults (rule, run_id, attempt_id, detail) as
select 'a shared limit holds for the stages that name it', null::bigint, null::bigint,
  format('stage %s of %s', s.name, p.name)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
where array(
    select l.name
    from millrace.limited_stages m
    join millrace.limits l on l.id = m.limit_id
    where m.stage_id = s.id and l.name is not null
    order by l.name)
  <> array(
    select n
    from jsonb_array_elements_text(s.limits -> 'shared') n
    order by n)
union all
select 'a stage''s limits are those of its own limit', null, null,
  format('stage %s of %s', s.name, p.name)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.limits l on l.stage_id = s.id
where s.limits is distinct from nullif(l.limits, '{}')
  or (l.id is not null and not exists (
    select from millrace.limited_stages m where m.limit_id = l.id and m.stage_id = s.id));
