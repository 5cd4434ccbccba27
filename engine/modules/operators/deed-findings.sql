-- What doctor() tells of deeds of people that are under way: throttles, silences and bulks

-- Lists throttles and silences, which end by themselves, and bulks that have stopped or that nobody
-- works on.
create function millrace.deed_findings()
returns table (what text, ok boolean, detail text)
language plpgsql stable
as $$
begin
  return query
    select 'throttles end by themselves', true,
      coalesce(string_agg(format(
        'stage %s of %s until %s, because: %s; to end it now: '
          || 'millrace_act({"verb": "unthrottle", "pipeline": "%2$s", "stage": "%1$s"})',
        s.name, p.name, to_char(t.until, 'YYYY-MM-DD HH24:MI:SS'),
        millrace.cut_text(t.reason, 200)),
        '; ' order by p.name, s.id), 'none is under way')
    from millrace.throttles t
    join millrace.stages s on s.id = t.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id;
  return query
    select 'silences end by themselves', true,
      coalesce(string_agg(format(
        '%s until %s, because: %s; to end it now: delete from millrace.silences where id = %s',
        concat_ws(' ', coalesce(s.kind || ' alerts', 'all alerts'), 'of stage ' || s.stage,
          'of ' || s.pipeline),
        to_char(s.until, 'YYYY-MM-DD HH24:MI:SS'), millrace.cut_text(s.reason, 200), s.id),
        '; ' order by s.id), 'none is under way')
    from millrace.silences s
    where s.until > millrace.now();
  return query
    select 'bulks go on until they are done', count(*) = 0,
      coalesce(string_agg(case
        when b.state = 'stopped' then format(
          'bulk %s (%s of %s) has stopped: %s; begin it again, or give it up: '
            || 'millrace_act({"verb": "abort", "bulk": %1$s})', b.id, b.verb, p.name, b.why)
        else format(
          'bulk %s (%s of %s) has come no further since %s: look at millrace.log, or do '
            || 'millrace_act({"verb": "continue", "bulk": %1$s})', b.id, b.verb, p.name,
          to_char(greatest(b.worked_at, b.began_at), 'YYYY-MM-DD HH24:MI:SS'))
      end, '; ' order by b.id), 'none has stopped')
    from millrace.bulks b
    join millrace.pipelines p on p.id = b.pipeline_id
    where b.state = 'stopped'
      or b.state = 'running'
      and greatest(b.worked_at, b.began_at) <= millrace.now() - interval '5 minutes';
end
$$;
