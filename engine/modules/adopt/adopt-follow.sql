-- Adopting rows: the old column follows until it is dropped
--
-- Whoever still reads the old status reads there what the new one comes to, and whoever still
-- writes it writes the new one. The trigger depends on both columns, so that dropping the old one,
-- with cascade, drops it too.

-- Says what the old column shows for a value: the old value that it has, where that means it, else
-- one that does, else one of the nearest value before it, failures and endings by themselves, else
-- the first there is. Of several it is what most rows had.
create function millrace.old_value_of(p_pipeline_id int, p_old text, p_value text) returns text
language plpgsql stable
as $$
begin
  return coalesce((
    select v.old_value
    from millrace.adopted_values v
    join millrace.status_values o on o.pipeline_id = v.pipeline_id and o.value = v.value
    join millrace.status_values n on n.pipeline_id = v.pipeline_id and n.value = p_value
    where v.pipeline_id = p_pipeline_id
      and (v.old_value <> '' or v.old_value = p_old and v.value = p_value)
    order by (v.old_value, v.value) = (p_old, p_value) desc nulls last,
      o.is_terminal = n.is_terminal desc, o.sort_order <= n.sort_order desc,
      abs(o.sort_order - n.sort_order), v.rows desc, v.old_value
    limit 1), p_old);
end
$$;

-- Says where a row comes to stand that somebody gave an old value, which the function has made a
-- value of. Raises MR005 where it means none.
create function millrace.value_meant(p_pipeline_id int, p_old text, p_value text)
returns text
language plpgsql stable
as $$
declare
  v_value text := coalesce(p_value, (
    select a.otherwise
    from millrace.adoptions a
    where a.pipeline_id = p_pipeline_id));
  v_lands text := (
    select v.lands
    from millrace.status_values v
    where v.pipeline_id = p_pipeline_id and v.value = v_value and not v.retired);
  v_adopted record;
begin
  if v_lands is null then
    select a.old_column, a.value_function, p.name, p.status ->> 'column' as status
    into v_adopted
    from millrace.adoptions a
    join millrace.pipelines p on p.id = a.pipeline_id
    where a.pipeline_id = p_pipeline_id;
    raise exception '% was set to %, which means no value of pipeline %',
      v_adopted.old_column, quote_nullable(p_old), v_adopted.name
      using errcode = 'MR005', hint = format(
        'Write %s instead, or let %s say what it means.', v_adopted.status,
        v_adopted.value_function);
  end if;
  return v_lands;
end
$$;

-- Creates the __adopted function of a pipeline with its trigger, which by its name comes before
-- those that note since when a value stands. A trigger waits for whoever writes the table, and
-- whoever would write it waits for that: so it is made soon or not now, before Postgres looks for a
-- deadlock with a define() that waits for both.
create function millrace.write_follower(
  p_pipeline millrace.pipelines, p_old_column text, p_function text
) returns void
language plpgsql
set lock_timeout = '500ms'
as $write$
declare
  v_status text := p_pipeline.status ->> 'column';
begin
  -- First, or a define() that writes the function too would make Postgres raise.
  execute format('lock table %s in share row exclusive mode', p_pipeline.entity_table);
  perform millrace.write_function(
    format('%I() returns trigger security definer', p_pipeline.name || '__adopted'), format($f$
begin
  if tg_op = 'INSERT' and new.%1$s is null and new.%2$s is not null
      or tg_op = 'UPDATE' and new.%1$s is not distinct from old.%1$s
        and old.%1$s is not null and new.%2$s is distinct from old.%2$s then
    new.%1$s := millrace.value_meant(%3$s, new.%2$s::text, %4$s::text);
  elsif new.%1$s is not null and (tg_op = 'INSERT' or new.%1$s is distinct from old.%1$s)
      and current_setting('millrace.adopting', true) is distinct from 'on' then
    new.%2$s := millrace.old_value_of(%3$s, new.%2$s::text, new.%1$s::text);
  end if;
  return new;
end $f$, millrace.quote_field(v_status), millrace.quote_field(p_old_column), p_pipeline.id,
    millrace.value_call(p_pipeline, p_old_column, p_function, 'new')));
  execute format($f$
create or replace trigger %2$I before insert or update of %3$I, %4$I on %5$s
  for each row execute function millrace.%1$I()$f$,
    p_pipeline.name || '__adopted', 'millrace_' || p_pipeline.name || '_adopted', v_status,
    p_old_column, p_pipeline.entity_table);
  execute format('revoke all on function millrace.%I() from public',
    p_pipeline.name || '__adopted');
exception when lock_not_available then
  raise exception 'somebody has been writing to table % for over half a second',
    p_pipeline.entity_table
    using errcode = 'MR004', hint = 'Nothing was written; try again shortly.';
end
$write$;
