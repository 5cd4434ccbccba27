-- pg_cron's SQL surface. The jobs are run by local/platform/pg-cron/worker.ts. The script of the
-- extension pg_cron (extensions.ts), run by the superuser.
-- Rights as on hosted: `postgres` schedules and sees its own jobs, nobody else reaches the schema.

create schema cron;
create sequence cron.jobid_seq;
create sequence cron.runid_seq;

create table cron.job (
  jobid bigint primary key default nextval('cron.jobid_seq'),
  schedule text not null,
  command text not null,
  nodename text not null default 'localhost',
  nodeport int not null default coalesce(inet_server_port(), 0),
  database text not null default current_database(),
  username text not null default current_user,
  active boolean not null default true,
  jobname text,
  constraint jobname_username_uniq unique (jobname, username)
);

create table cron.job_run_details (
  jobid bigint,
  runid bigint primary key default nextval('cron.runid_seq'),
  job_pid int,
  database text,
  username text,
  command text,
  status text,
  return_message text,
  start_time timestamptz,
  end_time timestamptz
);

-- The worker reads the jobs again when it is told that they have changed.
create function cron._tell_change() returns trigger
language plpgsql
set search_path = ''
as $$
begin
  perform pg_notify('pg_cron_changed', '');
  return null;
end
$$;

create trigger tell_change after insert or update or delete or truncate on cron.job
for each statement execute function cron._tell_change();

alter table cron.job enable row level security;
create policy cron_job_policy on cron.job using (username = current_user);
alter table cron.job_run_details enable row level security;
create policy cron_job_run_details_policy on cron.job_run_details using (username = current_user);

-- The worker reads a schedule with a cron library; this refuses at the call what pg_cron refuses at the call.
create function cron._check_schedule(p_schedule text) returns void
language plpgsql
set search_path = ''
as $$
declare
  v_number constant text := '([0-9]{1,2}|[A-Za-z]{3})';
  v_part constant text := format('(\*|\$|%s(-%s)?)(/[0-9]{1,2})?', v_number, v_number);
  v_field constant text := format('%s(,%s)*', v_part, v_part);
begin
  if p_schedule ~* '^\s*([1-9]|[1-5][0-9])\s+seconds?\s*$'
     or p_schedule ~* '^\s*@(yearly|annually|monthly|weekly|daily|midnight|hourly)\s*$'
     -- Five fields; whatever follows them is not read.
     or p_schedule ~ format('^\s*%s(\s+%s){4}(\s|$)', v_field, v_field) then
    return;
  end if;
  raise exception 'invalid schedule: %', p_schedule
    using errcode = 'invalid_parameter_value',
          hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
end
$$;

-- The user is passed in, because the functions below run as their owner.
create function cron._put_job(
  p_name text, p_schedule text, p_command text, p_database text, p_username text, p_active boolean
) returns bigint
language plpgsql security definer
set search_path = ''
as $$
declare
  v_jobid bigint;
begin
  perform cron._check_schedule(p_schedule);
  insert into cron.job (schedule, command, database, username, active, jobname)
  values (p_schedule, p_command, p_database, p_username, p_active, p_name)
  on conflict on constraint jobname_username_uniq do update
    set schedule = excluded.schedule, command = excluded.command, database = excluded.database
  returning jobid into v_jobid;
  return v_jobid;
end
$$;

create function cron.schedule(schedule text, command text) returns bigint
language plpgsql strict
set search_path = ''
as $$
begin
  return cron._put_job(null, schedule, command, current_database(), current_user, true);
end
$$;

create function cron.schedule(job_name text, schedule text, command text) returns bigint
language plpgsql
set search_path = ''
as $$
begin
  if job_name is null then
    raise exception 'job_name can not be NULL' using errcode = 'null_value_not_allowed';
  end if;
  return cron._put_job(job_name, schedule, command, current_database(), current_user, true);
end
$$;

create function cron.schedule_in_database(
  job_name text, schedule text, command text, database text,
  username text default null, active boolean default true
) returns bigint
language plpgsql
set search_path = ''
as $$
begin
  if username is not null and username <> current_user then
    raise exception 'must be superuser to create a job for another role'
      using errcode = 'insufficient_privilege';
  end if;
  return cron._put_job(job_name, schedule, command, database, current_user, active);
end
$$;

create function cron._delete_jobs(p_jobid bigint, p_name text, p_username text) returns boolean
language plpgsql security definer
set search_path = ''
as $$
begin
  delete from cron.job
   where username = p_username and (jobid = p_jobid or jobname = p_name);
  if not found then
    raise exception 'could not find valid entry for job %',
      case when p_name is null then p_jobid::text else format('''%s''', p_name) end;
  end if;
  return true;
end
$$;

create function cron.unschedule(job_id bigint) returns boolean
language plpgsql strict
set search_path = ''
as $$
begin
  return cron._delete_jobs(job_id, null, current_user);
end
$$;

create function cron.unschedule(job_name text) returns boolean
language plpgsql strict
set search_path = ''
as $$
begin
  return cron._delete_jobs(null, job_name, current_user);
end
$$;

create function cron._alter_job(
  p_jobid bigint, p_schedule text, p_command text, p_database text, p_username text,
  p_active boolean,
  p_owner text
) returns void
language plpgsql security definer
set search_path = ''
as $$
begin
  if p_schedule is not null then
    perform cron._check_schedule(p_schedule);
  end if;
  update cron.job
     set schedule = coalesce(p_schedule, schedule), command = coalesce(p_command, command),
         database = coalesce(p_database, database), username = coalesce(p_username, username),
         active = coalesce(p_active, active)
   where jobid = p_jobid and username = coalesce(p_owner, username);
  if not found then
    raise exception 'Job % does not exist or you don''t own it', p_jobid;
  end if;
end
$$;

create function cron.alter_job(
  job_id bigint, schedule text default null, command text default null, database text default null,
  username text default null, active boolean default null
) returns void
language plpgsql
set search_path = ''
as $$
declare
  v_super constant boolean := (select r.rolsuper from pg_roles r where r.rolname = current_user);
begin
  if username is not null and not v_super then
    raise exception 'must be superuser to alter username';
  elsif num_nonnulls(schedule, command, database, username, active) = 0 then
    raise exception 'no updates specified'
      using hint = 'You must specify at least one job attribute to change when calling alter_job';
  end if;
  -- The superuser may alter any job, others their own.
  perform cron._alter_job(job_id, schedule, command, database, username, active,
    case when not v_super then current_user end);
end
$$;

revoke execute on all functions in schema cron from public;
