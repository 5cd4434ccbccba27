-- The sweep: fan-outs whose parents are gone wait for it as abandoned ones, so that it need not
-- walk all that are closed.
update millrace.fan_outs f
set state = 'abandoned'
where f.state = 'closed'
  and not exists (select from millrace.runs r where r.id = f.run_id);
