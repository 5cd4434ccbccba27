-- Stands in for the engine's projection until that is there.
insert into public.status_lookup (code, name, description, category, is_terminal, sort_order)
select c.code, c.name, c.name,
  case c.code / 100 when 1 then 'discovery' when 2 then 'enrichment' when 3 then 'review' when 4 then 'published' else 'terminal' end,
  c.code >= 500, c.place
from (values (100, 'discovered', 1), (110, 'to_fetch', 2), (111, 'fetching', 3), (112, 'fetched', 4), (120, 'to_score', 5),
  (121, 'scoring', 6), (122, 'scored', 7), (200, 'pending_enrichment', 8), (210, 'to_summarize', 9), (211, 'summarizing', 10),
  (212, 'summarized', 11), (220, 'to_tag', 12), (221, 'tagging', 13), (222, 'tagged', 14), (230, 'to_thumbnail', 15),
  (231, 'thumbnailing', 16), (232, 'thumbnailed', 17), (240, 'enriched', 18), (300, 'pending_review', 19), (310, 'in_review', 20),
  (320, 'editing', 21), (330, 'approved', 22), (400, 'published', 23), (410, 'updated', 24), (500, 'failed', 25),
  (510, 'unreachable', 26), (520, 'duplicate', 27), (530, 'irrelevant', 28), (540, 'rejected', 29)) c(code, name, place);

create function public.stub_history() returns trigger language plpgsql as $$
declare
  v_claims jsonb := nullif(current_setting('request.jwt.claims', true), '')::jsonb;
  v_actor text := coalesce('user:' || coalesce(v_claims #>> '{app_metadata,name}', v_claims ->> 'email', v_claims ->> 'sub'),
    nullif(current_setting('millrace.actor', true), ''), 'user:' || session_user);
begin
  if current_setting('stub.engine', true) is distinct from 'on' and tg_op = 'UPDATE'
    and (old.status_code, new.status_code) not in (values (300, 310), (310, 320), (310, 330), (310, 540), (310, 300), (320, 330), (320, 310),
      (320, 540), (320, 410), (320, 400), (400, 320), (410, 320), (540, 300), (500, 110), (520, 120)) then
    raise exception '% cannot become %', old.status_code, new.status_code
      using errcode = 'MR005', hint = case old.status_code when 300 then 'open it first: write 310' else 'leave it' end;
  end if;
  insert into public.status_history (queue_id, from_status, to_status, changed_at, changed_by, changes, duration_ms)
  values (new.id, case when tg_op = 'UPDATE' then old.status_code end, new.status_code, clock_timestamp(),
    case when current_setting('stub.engine', true) = 'on' then 'system:auto' else v_actor end,
    case when current_setting('stub.engine', true) is distinct from 'on' then new.status_changes end,
    case when tg_op = 'UPDATE' then extract(epoch from clock_timestamp() - old.status_changed_at) * 1000 end);
  return null;
end $$;
alter function public.stub_history() security definer;
create function public.stub_since() returns trigger language plpgsql as $$
begin new.status_changed_at := clock_timestamp(); return new; end $$;
create trigger stub_since before update on public.ingestion_queue for each row
  when (old.status_code is distinct from new.status_code) execute function public.stub_since();
create trigger stub_insert after insert on public.ingestion_queue for each row execute function public.stub_history();
create trigger stub_update after update on public.ingestion_queue for each row
  when (old.status_code is distinct from new.status_code) execute function public.stub_history();
create function public.stub_engine(p_id uuid, p_code smallint) returns void language plpgsql security definer as $$
begin
  perform set_config('stub.engine', 'on', true);
  update public.ingestion_queue set status_code = p_code where id = p_id;
  if p_code = 400 then
    insert into public.publication (queue_id, slug, title, summary, tags, thumbnail_url, url)
    select id, id::text, coalesce(title, 'Untitled'), summary, coalesce(tags, '{}'), thumbnail_url, url
    from public.ingestion_queue where id = p_id on conflict do nothing;
  end if;
  perform set_config('stub.engine', '', true);
end $$;
