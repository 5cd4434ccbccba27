-- Saves the address of the operator's page, to which messages about alerts link, and returns the
-- address that is saved now. An address of the local machine replaces only another local address.
-- p_page_url: null changes nothing.
create function public.millrace_keep_page(p_page_url text)
set plan = free
as $$
  v_own text := '^http://(localhost|127\.[0-9.]+|\[::1\])[:/]';

update millrace.settings s
set value = p_page_url
where s.name = 'page_url'
  and (p_page_url !~ v_own or s.value = '' or s.value ~ v_own)
  and s.value <> p_page_url;
return jsonb_build_object('page_url', (
  select s.value from millrace.settings s where s.name = 'page_url'));
$$;

-- Returns the remedy for a function's answer to a wake-up; null where it answered well.
-- p_status: the HTTP status; null means that no answer came.
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

-- Returns how the function millrace answered the wake-up that pg_net has under an id.
-- answered: false until pg_net has an answer or an error.
create function public.millrace_wake_answer(p_request bigint)
stable
set plan = free
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
