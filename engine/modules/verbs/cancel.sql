-- Cancelling, and holding runs for a person's call

-- Cancels a run.
create function millrace.cancel_one(p_run bigint) returns void
language plpgsql
as $$
declare
  v_run millrace.runs := millrace.hold_run(p_run);
begin
  if v_run.status <> 'running' then
    raise exception 'run % cannot be cancelled: it is %', p_run, v_run.status
      using errcode = 'MR004', hint = 'Only a running run can be cancelled: '
        'select * from millrace.runs where status = ''running''.';
  end if;
  perform millrace.end_runs(array[p_run], 'cancelled');
  perform millrace.project_cancelled(millrace.cancel_attempts(array[p_run], null));
end
$$;
