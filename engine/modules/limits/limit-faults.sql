-- Finds limits that hold for other stages than name them, or otherwise than these say.
create view millrace.limit_faults (rule, run_id, attempt_id, detail) as
select 'the limits of a stage are its own and those that it names', null::bigint, null::bigint,
  format('stage %s of %s', s.name, p.name)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.limits o on o.stage_id = s.id
where s.limits is distinct from nullif(o.limits, '{}')
  or array(
    select coalesce(l.name, '')
    from millrace.limited_stages m
    join millrace.limits l on l.id = m.limit_id
    where m.stage_id = s.id
    order by 1)
  <> array(
    select n
    from jsonb_array_elements_text(s.limits -> 'shared') n
    union all
    select ''
    order by 1);
