-- Models at batch prices: the batches, and the questions that each of them carries

create table public.model_batches (
  id bigint generated always as identity constraint model_batches_pkey primary key,
  key text not null default substr(md5(gen_random_uuid()::text), 1, 16)
    constraint model_batches_key_key unique,
  pipeline text not null,
  stage text not null,
  service text not null,
  settings text not null,
  api text not null,
  url text not null,
  model text not null,
  prices jsonb,
  lines int not null default 0,
  bytes bigint not null default 0,
  closes_at timestamptz,
  ends_at timestamptz not null,
  closed_at timestamptz,
  round int not null default 1,
  begun_at timestamptz,
  -- When a call last went out to begin it; begun_at is the first.
  tried_at timestamptz,
  sent int,
  job_id text,
  status text not null default 'open',
  ended_at timestamptz
);
create index model_batches_by_closing on public.model_batches (closes_at);
create index model_batches_by_job on public.model_batches (job_id);
create index model_batches_open on public.model_batches (pipeline, stage)
  where closed_at is null;
comment on table public.model_batches is
  'Batches of questions at a model provider''s half price. Those that ended may be deleted.';

create table public.model_batch_lines (
  id bigint generated always as identity constraint model_batch_lines_pkey primary key,
  batch_id bigint not null constraint model_batch_lines_batch_fkey
    references public.model_batches on delete cascade,
  effect text not null,
  attempt bigint not null,
  submission bigint not null,
  trace_id text not null,
  entity_id text not null,
  request text not null,
  origin jsonb not null,
  gathered_at timestamptz not null default millrace.now(),
  answer jsonb,
  usage jsonb,
  lapsed boolean not null default false,
  handed_at timestamptz,
  -- Its row has asked another question since it was sent: nobody gets the answer.
  dropped boolean not null default false
);
create unique index model_batch_lines_live on public.model_batch_lines (effect)
  where handed_at is null;
create index model_batch_lines_by_effect on public.model_batch_lines (effect, gathered_at);
create index model_batch_lines_to_hand on public.model_batch_lines (batch_id, id)
  where handed_at is null;
create index model_batch_lines_by_batch on public.model_batch_lines (batch_id, id);
comment on table public.model_batch_lines is
  'Questions of batches. A stage of a run has at most one whose answer it has not got.';

alter table public.model_batches enable row level security;
alter table public.model_batch_lines enable row level security;
revoke all on public.model_batches, public.model_batch_lines
  from anon, authenticated, service_role;
grant select, insert, update, delete on public.model_batches, public.model_batch_lines
  to service_role;

-- Whether an attempt of the submission has not ended yet.
create function public.model_batch_waits(p_submission bigint) returns boolean
language sql stable security definer set search_path = ''
as $$
select exists (
    select from millrace.attempts a
    where a.id = p_submission and a.state in ('queued', 'started', 'waiting'))
  or exists (
    select from millrace.attempts a
    where a.submission_id = p_submission and a.state in ('queued', 'started', 'waiting'))
$$;

-- A batch as the stages read it; is_over: its rows should wait no longer.
create function public.model_batch_shown(p_batch public.model_batches) returns jsonb
language sql stable set search_path = ''
as $$
select to_jsonb(p_batch)
  || jsonb_build_object('is_over', p_batch.ends_at <= millrace.now())
$$;

-- Whether two bodies ask the same question: a retry may only allow a longer answer.
create function public.model_batch_same(p_one text, p_other text) returns boolean
language sql immutable set search_path = ''
as $$
select p_one = p_other or p_one::jsonb - '{max_tokens, max_output_tokens, max_completion_tokens}'
  ::text[] = p_other::jsonb - '{max_tokens, max_output_tokens, max_completion_tokens}'::text[]
$$;

-- Writes how full a batch has become.
create function public.model_batch_fill(p_batch public.model_batches) returns void
language sql set search_path = ''
as $$
update public.model_batches b
set lines = p_batch.lines, bytes = p_batch.bytes, closes_at = p_batch.closes_at
where b.id = p_batch.id
$$;

-- Adds questions to the open batch of their stage. Answers in their order: {custom_id}, or {direct}
-- where its time for batches is over. A row that asks something else leaves its former batch.
create function public.model_batch_gather(p_job jsonb, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = ''
-- A session's first plans are made while the tables are small, and would read all of them later.
set plan_cache_mode = force_custom_plan
as $$
declare
  v_item jsonb;
  v_live record;
  v_batch public.model_batches;
  v_id bigint;
  v_answers jsonb := '[]';
  v_within interval := make_interval(secs => (p_job ->> 'within_seconds')::int);
begin
  if not exists (
      select from millrace.pipelines p
      where p.entity_table = 'public.model_batches'::regclass) then
    raise exception 'No pipeline carries the rows of public.model_batches'
      using errcode = 'MR002', hint = 'Export modelBatches of _millrace/batches/model-batches.ts '
        'from a file in _pipelines, and run npx millrace sync.';
  end if;
  -- Calls of a stage wait for each other: two at once would each open a batch.
  perform pg_advisory_xact_lock(hashtextextended(
    'model_batches ' || (p_job ->> 'pipeline') || '/' || (p_job ->> 'stage'), 0));
  -- In the order of model_batch_close(): batches before their questions.
  perform from public.model_batches b
  where b.id = any (array(
    select o.id from public.model_batches o
    where o.pipeline = p_job ->> 'pipeline' and o.stage = p_job ->> 'stage'
      and o.closed_at is null
    union
    select l.batch_id
    from jsonb_array_elements(p_items) i
    cross join lateral (
      select o.batch_id
      from public.model_batch_lines o
      where o.effect = i.value ->> 'effect' and o.handed_at is null
      offset 0) l))
  order by b.id
  for update;
  for v_item in select i.value from jsonb_array_elements(p_items) i loop
    select l.id, l.request, b.key, b.begun_at, b.ends_at, b.ended_at into v_live
    from (
      select o.* from public.model_batch_lines o
      where o.effect = v_item ->> 'effect' and o.handed_at is null
      for update) l
    join public.model_batches b on b.id = l.batch_id;
    if found and v_live.ended_at is null and millrace.now() >= v_live.ends_at
        + (case when v_live.begun_at is null then interval '0' else interval '30 hours' end) then
      -- Its batch never began, or has outlived the provider's day: its own run has failed.
      update public.model_batch_lines l
      set handed_at = millrace.now(), lapsed = true, dropped = v_live.begun_at is not null
      where l.id = v_live.id;
      v_live.id := null;
    elsif found and not public.model_batch_same(v_live.request, v_item ->> 'request') then
      update public.model_batch_lines l
      set handed_at = millrace.now(), dropped = v_live.begun_at is not null
      where l.id = v_live.id;
      v_live.id := null;
    end if;
    if v_live.id is not null then
      update public.model_batch_lines l
      set attempt = (v_item ->> 'attempt')::bigint,
        submission = (v_item ->> 'submission')::bigint
      where l.id = v_live.id;
      v_answers := v_answers
        || jsonb_build_object('custom_id', v_live.key || '-' || v_live.id);
    elsif p_job ->> 'fallback' = 'direct' and exists (
        select from public.model_batch_lines l
        where l.effect = v_item ->> 'effect'
          and (l.lapsed or l.gathered_at + v_within <= millrace.now())) then
      v_answers := v_answers || '{"direct": true}';
    else
      if v_batch.id is null or v_batch.closes_at <= millrace.now() then
        perform public.model_batch_fill(v_batch);
        select b.* into v_batch
        from public.model_batches b
        where b.pipeline = p_job ->> 'pipeline' and b.stage = p_job ->> 'stage'
          and b.service = p_job ->> 'service' and b.settings = p_job ->> 'settings'
          and b.api = p_job ->> 'api' and b.url = p_job ->> 'url' and b.model = p_job ->> 'model'
          and b.closed_at is null and b.closes_at > millrace.now()
          and b.lines < (p_job ->> 'max_rows')::int
          and b.bytes < (p_job ->> 'max_bytes')::int
        order by b.id
        limit 1
        for update;
        if not found then
          insert into public.model_batches (
            pipeline, stage, service, settings, api, url, model, prices, closes_at, ends_at)
          values (p_job ->> 'pipeline', p_job ->> 'stage', p_job ->> 'service',
            p_job ->> 'settings',
            p_job ->> 'api', p_job ->> 'url', p_job ->> 'model', p_job -> 'prices',
            millrace.now() + make_interval(secs => (p_job ->> 'gather_seconds')::int),
            millrace.now() + v_within)
          returning * into v_batch;
        end if;
      end if;
      insert into public.model_batch_lines (
        batch_id, effect, attempt, submission, trace_id, entity_id, request, origin)
      values (v_batch.id, v_item ->> 'effect', (v_item ->> 'attempt')::bigint,
        (v_item ->> 'submission')::bigint, v_item ->> 'trace_id', v_item ->> 'entity_id',
        v_item ->> 'request', v_item -> 'origin')
      returning id into v_id;
      v_batch.lines := v_batch.lines + 1;
      v_batch.bytes := v_batch.bytes + octet_length(v_item ->> 'request');
      if v_batch.lines >= (p_job ->> 'max_rows')::int
        or v_batch.bytes >= (p_job ->> 'max_bytes')::int then
        v_batch.closes_at := millrace.now();
      end if;
      v_answers := v_answers || jsonb_build_object('custom_id', v_batch.key || '-' || v_id);
    end if;
  end loop;
  perform public.model_batch_fill(v_batch);
  return v_answers;
end
$$;

-- Closes a batch, and takes out the questions of rows that wait no longer. From then on the
-- questions stay as they are sent. was_begun: an earlier call may have begun it at the provider;
-- is_fresh: and may still be at it.
create function public.model_batch_close(p_job jsonb) returns jsonb
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_custom_plan
as $$
declare
  v_batch public.model_batches;
  v_was_begun boolean;
  v_is_fresh boolean;
begin
  select b.* into v_batch
  from public.model_batches b
  where b.id = (p_job ->> 'id')::bigint
  for update;
  v_was_begun := v_batch.begun_at is not null;
  v_is_fresh := v_batch.tried_at > millrace.now() - interval '2 minutes';
  if v_is_fresh is not true then
    update public.model_batches b set tried_at = millrace.now() where b.id = v_batch.id;
  end if;
  if not v_was_begun then
    perform from public.model_batch_lines l
    where l.batch_id = v_batch.id and l.handed_at is null and l.answer is null
    order by l.id
    for update;
    update public.model_batch_lines l
    set handed_at = coalesce(l.handed_at, millrace.now()), dropped = false
    where l.batch_id = v_batch.id and l.answer is null
      and (l.dropped or l.handed_at is null and not public.model_batch_waits(l.submission));
    update public.model_batches b
    set closed_at = coalesce(b.closed_at, millrace.now()),
      begun_at = millrace.now(),
      status = 'begun',
      sent = (
        select count(*) from public.model_batch_lines l
        where l.batch_id = b.id and l.handed_at is null and l.answer is null)
    where b.id = v_batch.id
    returning * into v_batch;
  end if;
  return public.model_batch_shown(v_batch) || jsonb_build_object('was_begun', v_was_begun,
    'is_fresh', coalesce(v_is_fresh, false));
end
$$;

-- Returns those of the ids of jobs at the provider that belong to batches.
create function public.model_batch_known(p_items jsonb) returns jsonb
language sql stable security definer set search_path = ''
as $$
select coalesce(jsonb_agg(b.job_id), '[]')
from jsonb_array_elements_text(p_items) i
join public.model_batches b on b.job_id = i.value
$$;

-- A batch by its id, or by its job at the provider. Writes p_job's {set_job_id, status}, if any;
-- forget: the job is another's.
create function public.model_batch_note(p_job jsonb) returns jsonb
language sql security definer set search_path = ''
as $$
update public.model_batches b
set job_id = case
    when p_job ? 'forget' then null
    else coalesce(p_job ->> 'set_job_id', b.job_id)
  end,
  status = coalesce(p_job ->> 'status', b.status)
where b.id = (p_job ->> 'id')::bigint or b.job_id = p_job ->> 'job_id'
returning public.model_batch_shown(b)
$$;

-- The lines of a batch's file behind a line, in order: [{id, request}].
create function public.model_batch_file(p_job jsonb) returns jsonb
language sql stable security definer set search_path = ''
as $$
select coalesce(jsonb_agg(to_jsonb(f) order by f.id), '[]')
from (
  select l.id, l.request
  from public.model_batch_lines l
  where l.batch_id = (p_job ->> 'id')::bigint and l.answer is null
    and (l.handed_at is null or l.dropped)
    and l.id > (p_job ->> 'after')::bigint
  order by l.id
  limit (p_job ->> 'limit')::int) f
$$;

-- Fails the questions for which the provider refused the whole file, [{line, answer}] by their
-- places in it, and lets the batch begin again without them. A repeated call changes nothing: the
-- places are those in the file of this job.
create function public.model_batch_reject(p_job jsonb, p_items jsonb) returns jsonb
language sql security definer set search_path = ''
as $$
with refused as (
  select b.id
  from public.model_batches b
  where b.id = (p_job ->> 'id')::bigint and b.job_id = p_job ->> 'job_id'
  for update
), numbered as (
  select l.id, row_number() over (order by l.id) as line
  from refused b
  join public.model_batch_lines l on l.batch_id = b.id
  where l.answer is null
    and (l.handed_at is null or l.dropped)
), rejected as (
  update public.model_batch_lines l
  set answer = i.value -> 'answer'
  from numbered n, jsonb_array_elements(p_items) i
  where n.line = (i.value ->> 'line')::bigint and l.id = n.id
  returning l.id
)
update public.model_batches b
set begun_at = null, job_id = null, round = b.round + 1
from refused o
where b.id = o.id
returning jsonb_build_object('rejected', (select count(*) from rejected))
$$;

-- Keeps the answers of a batch, [{line, answer, usage}]; the first to a question wins.
create function public.model_batch_take(p_job jsonb, p_items jsonb) returns jsonb
language sql security definer set search_path = ''
as $$
with given as (
  select distinct on (g.line) g.*
  from jsonb_to_recordset(p_items) g(line bigint, answer jsonb, usage jsonb)
), taken as (
  update public.model_batch_lines l
  set answer = g.answer, usage = g.usage
  from given g
  where l.id = g.line and l.batch_id = (p_job ->> 'id')::bigint and l.answer is null
  returning l.id
)
select jsonb_build_object('taken', (select count(*) from taken))
$$;

-- Ends a batch: questions without an answer get p_job's. lapsed: they may be asked directly.
create function public.model_batch_end(p_job jsonb) returns jsonb
language sql security definer set search_path = ''
as $$
with ended as (
  update public.model_batches b
  set ended_at = coalesce(b.ended_at, millrace.now()),
    closes_at = null,
    status = p_job ->> 'status'
  where b.id = (p_job ->> 'id')::bigint
  returning b.id
), unanswered as (
  update public.model_batch_lines l
  set answer = p_job -> 'answer', lapsed = (p_job ->> 'lapsed')::boolean
  from ended e
  where l.batch_id = e.id and l.handed_at is null and l.answer is null
  returning l.id
)
select jsonb_build_object('unanswered', (select count(*) from unanswered))
$$;

-- How many questions of a batch were sent and have no answer, and what the answers have cost.
create function public.model_batch_sums(p_job jsonb) returns jsonb
language sql stable security definer set search_path = ''
as $$
select jsonb_build_object('lines', count(*),
  'unanswered', count(*) filter (
    where l.answer is null and (l.handed_at is null or l.dropped)),
  'lapsed', count(*) filter (where l.lapsed),
  'cost_usd', sum((l.usage ->> 'cost_usd')::numeric))
from public.model_batch_lines l
where l.batch_id = (p_job ->> 'id')::bigint
$$;

-- The next rows of a batch that have not got their answers.
create function public.model_batch_next(p_job jsonb) returns jsonb
language sql stable security definer set search_path = ''
as $$
select coalesce(jsonb_agg(to_jsonb(n) order by n.id), '[]')
from (
  select l.id, l.attempt, l.submission, l.trace_id, l.entity_id
  from public.model_batch_lines l
  where l.batch_id = (p_job ->> 'id')::bigint and l.handed_at is null and l.answer is not null
  order by l.id
  limit (p_job ->> 'limit')::int) n
$$;

-- Marks those of the rows, [{id, submission}], whose attempts have ended: they have their answers.
create function public.model_batch_handed(p_items jsonb) returns jsonb
language sql security definer set search_path = ''
as $$
with handed as (
  update public.model_batch_lines l
  set handed_at = millrace.now()
  from jsonb_to_recordset(p_items) g(id bigint, submission bigint)
  where l.id = g.id and l.submission = g.submission
    and not public.model_batch_waits(l.submission)
  returning l.id
)
select jsonb_build_object('handed', (select count(*) from handed))
$$;

-- The answers to the questions of these custom_ids: [{custom_id, api, origin, answer}].
create function public.model_batch_answers(p_items jsonb) returns jsonb
language sql stable security definer set search_path = ''
as $$
select coalesce(jsonb_agg(jsonb_build_object(
  'custom_id', i.value, 'api', b.api, 'origin', l.origin, 'answer', l.answer)), '[]')
from jsonb_array_elements_text(p_items) i
join public.model_batch_lines l on l.id = split_part(i.value, '-', 2)::bigint
-- The key, too: numbers may begin anew, as in a database that was restored.
join public.model_batches b on b.id = l.batch_id and b.key = split_part(i.value, '-', 1)
$$;

-- Deletes batches with their questions thirty days after they ended. A batch whose own run failed
-- or was cancelled never ends: it goes thirty days after its time, once no run needs it any more.
create function public.model_batch_expire() returns void
language sql security definer set search_path = ''
as $$
delete from public.model_batches b
where b.ended_at < millrace.now() - interval '30 days'
  or b.ended_at is null and b.ends_at < millrace.now() - interval '30 days'
    and not exists (
      select from millrace.runs r
      where r.pipeline_id in (
          select p.id from millrace.pipelines p
          where p.entity_table = 'public.model_batches'::regclass)
        and r.entity_id = b.id::text and r.status = 'running')
    and not exists (
      select from public.model_batch_lines l
      join millrace.runs r on r.trace_id = l.trace_id::uuid
      where l.batch_id = b.id and r.status = 'running')
$$;

do $$
declare
  v_function text;
begin
  for v_function in
    select p.oid::regprocedure
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname like 'model\_batch\_%'
  loop
    execute format('revoke all on function %s from public, anon, authenticated', v_function);
    execute format('grant execute on function %s to service_role', v_function);
  end loop;
end
$$;

select cron.schedule(
  'model-batches-expire', '37 3 * * *',
  'select public.model_batch_expire() /* pruned by millrace */');
