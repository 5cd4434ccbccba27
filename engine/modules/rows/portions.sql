-- Runs a statement over keys, and over each half of them where it raises, as where a user's trigger
-- refuses a row. So one row does not stop the others.
-- p_work: the statement. $1 is the keys; it returns how many it has done.
-- p_until: until when halves are tried.
-- refused: a value for each key for which the statement raised an error. Once p_until is over, a
-- value stands for all keys of a half. A fatal error is raised again.
create function millrace.in_halves(
  p_keys text[], p_work text, p_until timestamptz,
  out done int, out refused millrace.refusal[]
)
set lock_timeout = '200ms'
as $$
  v_half int := cardinality(p_keys) / 2;
  v_kind text;
  v_left record;
  v_right record;

done := 0;
refused := '{}';
if p_keys = '{}' then
  return;
end if;
begin
  execute p_work into done using p_keys;
  done := coalesce(done, 0);
  return;
exception when anything then
  v_kind := millrace.error_kind(sqlstate, v_context);
  if v_kind = 'fatal' then
    raise;
  elsif v_half = 0 or clock_timestamp() >= p_until then
    refused := array[row(p_keys[1], cardinality(p_keys) - 1, sqlstate, sqlerrm,
      v_kind = 'transient')::millrace.refusal];
    return;
  end if;
end;
v_left := millrace.in_halves(p_keys[:v_half], p_work, p_until);
v_right := millrace.in_halves(p_keys[v_half + 1:], p_work, p_until);
done := v_left.done + v_right.done;
refused := v_left.refused || v_right.refused;
$$;
