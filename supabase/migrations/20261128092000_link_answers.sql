-- Links: what the model answered about a text is kept for other links with the same text

create table public.link_answers (
  key text constraint link_answers_pkey primary key,
  answer jsonb not null,
  answered_at timestamptz not null default millrace.now()
);
create index link_answers_by_age on public.link_answers (answered_at);
comment on table public.link_answers is
  'Answers of the model by a hash of model, prompt, schema and text. Any row may be deleted.';

-- Deletes answers that are older than so many days, then the oldest beyond so many rows; 10,000 of
-- each a call at most.
create function public.delete_old_link_answers(p_days int, p_rows bigint) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old int;
  v_more int;
begin
  delete from public.link_answers a
  where a.key = any (array(
    select o.key from public.link_answers o
    where o.answered_at < millrace.now() - make_interval(days => p_days)
    order by o.answered_at limit 10000));
  get diagnostics v_old = row_count;
  delete from public.link_answers a
  where a.key = any (array(
    select o.key from public.link_answers o
    order by o.answered_at
    limit least(10000, greatest(0, (select count(*) from public.link_answers) - p_rows))));
  get diagnostics v_more = row_count;
  return v_old + v_more;
end
$$;
comment on function public.delete_old_link_answers(int, bigint) is
  'Deletes answers after so many days and beyond so many rows, and returns how many. pg_cron calls '
  'it every hour; for other bounds schedule links-delete-old-answers anew.';
select cron.schedule(
  'links-delete-old-answers', '7 * * * *',
  'select public.delete_old_link_answers(30, 100000) /* pruned by millrace */');

alter table public.link_answers enable row level security;
revoke all on public.link_answers from anon, authenticated, service_role;
grant select, insert, update, delete on public.link_answers to service_role;
revoke all on function public.delete_old_link_answers(int, bigint)
  from public, anon, authenticated, service_role;
