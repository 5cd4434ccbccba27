-- Keeps the address of the operator's page, to which messages about alerts link, and returns what
-- is kept; null changes nothing. An address of one machine replaces only another of that sort.
create function public.millrace_keep_page(p_page_url text) returns jsonb
set millrace.plan = free
as $$
declare
  v_own text := '^http://(localhost|127\.[0-9.]+|\[::1\])[:/]';

update millrace.settings s
set value = p_page_url
where s.name = 'page_url'
  and (p_page_url !~ v_own or s.value = '' or s.value ~ v_own)
  and s.value <> p_page_url;
return jsonb_build_object('page_url', (
  select s.value from millrace.settings s where s.name = 'page_url'));
$$;

-- Says what helps where a function answered a wake-up so; null where it answered well.
create function millrace.answer_remedy(p_function text, p_status int) returns text
immutable
as $$
select case
  when p_status between 200 and 299 then null
  when p_status is null then 'correct the setting project_url, or see whether it is up there'
  when p_status in (404, 426) then 'deploy it: npx supabase functions deploy ' || f.name
  when p_status in (401, 403) then 'npx millrace connect has both sides know one wake_secret'
  else format('see the log of %s: in the dashboard under Edge Functions; locally in the terminal '
    'that serves it', f.name)
end
from split_part(p_function, '/', 1) f(name)
$$;

-- Tells what became of the wake-up that pg_net has under this id: answered is false until it was.
create function public.millrace_wake_answer(p_request bigint) returns jsonb
stable
set millrace.plan = free
as $$
return coalesce((
  select jsonb_build_object('answered', true, 'status', r.status_code, 'error', r.error_msg,
    'remedy', millrace.answer_remedy('millrace', r.status_code))
  from millrace.posts p
  join net._http_response r
    on r.id = p.request_id and r.created > p.posted_at - interval '1 minute'
  where p.request_id = p_request
  order by p.posted_at desc
  limit 1), '{"answered": false}');
$$;
