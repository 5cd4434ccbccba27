-- The journal: the actions of people, a row for each, written in the transaction of the action

-- Writes a journal entry and returns its id.
-- p_said: any of id, runs, filter, reason, bulk_id and outcome, and subject and key where they are
-- not the session's.
create function millrace.note(
  p_verb text,
  p_pipeline text,
  p_stage text default null,
  p_run_ids bigint[] default '{}',
  p_said jsonb default '{}')
returns bigint
as $$
  v_caller millrace.caller := millrace.caller();
  v_id bigint := coalesce((p_said ->> 'id')::bigint, nextval('millrace.journal_id_seq'));

insert into millrace.journal (
  id, at, verb, pipeline, stage, run_ids, runs, subject, key, session, filter, reason, bulk_id,
  outcome)
overriding system value
values (
  v_id, v_now, p_verb, p_pipeline, p_stage, p_run_ids,
  coalesce((p_said ->> 'runs')::int, cardinality(p_run_ids)),
  case when p_said ? 'key' then p_said ->> 'subject' else v_caller.subject end,
  coalesce(p_said ->> 'key', v_caller.key),
  jsonb_strip_nulls(jsonb_build_object(
    'user', session_user,
    'role', nullif(current_setting('role', true), 'none'),
    'pid', pg_backend_pid(),
    'application', nullif(current_setting('application_name', true), ''),
    'address', host(inet_client_addr()))),
  nullif(p_said -> 'filter', 'null'),
  coalesce(p_said ->> 'reason', nullif(current_setting('millrace.reason', true), '')),
  (p_said ->> 'bulk_id')::bigint, coalesce(p_said -> 'outcome', '{}'));
return v_id;
$$;

-- Raises MR004 where a journal entry is changed, or deleted before it is older than journal_days.
create function millrace.keep_journal() returns trigger
as $$
if tg_op = 'DELETE' then
  if not exists (select from gone g where g.at > v_now
        - make_interval(days => coalesce(millrace.setting('journal_days'), '400')::int)) then
    return null;
  end if;
end if;
raise exception 'MR004: what is written in the journal stays as it is'
  using hint = 'Lines that are older than the setting journal_days are deleted by the sweep.';
$$;

create trigger journal_is_kept
before update or truncate on millrace.journal
for each statement execute function millrace.keep_journal();

create trigger journal_is_not_deleted
after delete on millrace.journal
referencing old table as gone
for each statement execute function millrace.keep_journal();

-- Deletes up to 1,000 journal entries that are older than journal_days, and bulks of the same age
-- that do not run.
create function millrace.prune_journal()
as $$
  v_before timestamptz := v_now
    - make_interval(days => coalesce(millrace.setting('journal_days'), '400')::int);

delete from millrace.journal j
where j.id in (
  select o.id from millrace.journal o where o.at < v_before order by o.at limit 1000);
delete from millrace.bulks b
where b.id in (select o.id from millrace.bulks o order by o.id limit 100)
  and b.created_at < v_before and b.state <> 'running';
$$;
