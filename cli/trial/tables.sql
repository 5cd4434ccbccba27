-- The tables of a trial: its rows, and the calls of its functions. Their names begin with trial_,
-- and the trial drops them at its end.
create table public.trial_rows (
  id bigint generated always as identity primary key,
  burns boolean not null default false
);
alter table public.trial_rows enable row level security;
revoke all on public.trial_rows from anon, authenticated, service_role;
grant select, insert, update, delete on public.trial_rows to service_role;

create table public.trial_calls (
  id bigint generated always as identity primary key,
  function_name text not null,
  at timestamptz not null default clock_timestamp()
);
alter table public.trial_calls enable row level security;
revoke all on public.trial_calls from anon, authenticated, service_role;
grant select, insert on public.trial_calls to service_role;

-- The extensions that the project has before the engine's: the others go with the trial.
do $$
begin
  execute format('comment on table public.trial_rows is %L', (
    select string_agg(e.extname, ' ')
    from pg_extension e));
end
$$;
