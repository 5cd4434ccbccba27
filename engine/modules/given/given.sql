-- Given: a row's first run skips the stages whose output the row has already, as a condition of
-- each stage says. A later run does not ask the condition, since the row's output is then mostly
-- the engine's own work.

-- Returns the stages that rows bring along if their first runs begin now, each list as the text of
-- an array; null for a row that had a run before. "limit" leaves the plan no choice but to look up
-- each row.
create function millrace.given_at_first(p_pipeline millrace.pipelines, p_entity_ids text[])
returns text[]
set enable_seqscan = off
as $$
  v_first text[] := array(
    select case when (
        select r.id
        from millrace.runs r
        where r.entity_id = i.id and r.pipeline_id = p_pipeline.id
        limit 1) is null and (
        select f.entity_id
        from millrace.former_runs f
        where f.entity_id = i.id and f.pipeline_id = p_pipeline.id
        limit 1) is null then i.id end
    from unnest(p_entity_ids) with ordinality i(id, ordinal)
    order by i.ordinal);
  v_asked jsonb[];

if array_remove(v_first, null) = '{}' then
  return null;
end if;
execute format('select millrace.%I($1, $2)', p_pipeline.name || '__asked')
into v_asked
using v_first, millrace.batch_bytes();
return array(
  select case when u.id is not null then array(
      select vs.stage_id
      from millrace.version_stages vs
      where vs.version_id = p_pipeline.current_version_id
        and vs.given_path is not null
        and jsonb_path_match_tz(u.asked, vs.given_path, '{}', true) is true
      order by vs.position)::text end
  from unnest(v_first, v_asked) with ordinality u(id, asked, ordinal)
  order by u.ordinal);
$$;
