-- Models: the answers to questions with a cache are kept for the same question of other rows

create table public.model_answers (
  key text constraint model_answers_pkey primary key,
  answer jsonb not null,
  expires_at timestamptz not null
);
create index model_answers_by_expiry on public.model_answers (expires_at);
comment on table public.model_answers is
  'Answers of models by a hash of tenant, model, prompt, schema and input. Any row may be deleted.';

alter table public.model_answers enable row level security;
revoke all on public.model_answers from anon, authenticated, service_role;
grant select, insert, update, delete on public.model_answers to service_role;

select cron.schedule(
  'model-answers-expire', '7 * * * *',
  'delete from public.model_answers where expires_at < now() /* pruned by millrace */');
