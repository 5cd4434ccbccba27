-- Web addresses: the one form in which links and articles compare them
--
-- Two spellings of a page's address have the same canonical form. Both examples know pages by it,
-- so each brings this file, and whichever comes second changes nothing.

-- Returns the characters of RFC 3492 for one step of an encoding.
create or replace function public.punycode_digits(p_delta int, p_bias int) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_digits constant text := 'abcdefghijklmnopqrstuvwxyz0123456789';
  v_rest int := p_delta;
  v_base int := 36;
  v_least int;
  v_made text := '';
begin
  loop
    v_least := least(greatest(v_base - p_bias, 1), 26);
    exit when v_rest < v_least;
    v_made := v_made
      || substr(v_digits, v_least + (v_rest - v_least) % (36 - v_least) + 1, 1);
    v_rest := (v_rest - v_least) / (36 - v_least);
    v_base := v_base + 36;
  end loop;
  return v_made || substr(v_digits, v_rest + 1, 1);
end
$$;

-- Returns the bias of RFC 3492 after a step.
create or replace function public.punycode_bias(p_delta int, p_letters int, p_first boolean)
returns int
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_delta int := case when p_first then p_delta / 700 else p_delta / 2 end;
  v_base int := 0;
begin
  v_delta := v_delta + v_delta / p_letters;
  while v_delta > 455 loop
    v_delta := v_delta / 35;
    v_base := v_base + 36;
  end loop;
  return v_base + 36 * v_delta / (v_delta + 38);
end
$$;

-- Writes a label of a host in ASCII, as name servers know it: bücher as xn--bcher-kva (RFC 3492).
create or replace function public.punycode(p_label text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_codes int[] := array(
    select ascii(c.letter)
    from regexp_split_to_table(p_label, '') with ordinality c(letter, place)
    order by c.place);
  v_ascii text := regexp_replace(p_label, '[^\x01-\x7f]', '', 'g');
  v_made text := case when v_ascii = '' then '' else v_ascii || '-' end;
  v_done int := length(v_ascii);
  v_code int := 128;
  v_next int;
  v_delta int := 0;
  v_bias int := 72;
  v_one int;
begin
  while v_done < cardinality(v_codes) loop
    v_next := (
      select min(c)
      from unnest(v_codes) c
      where c >= v_code);
    v_delta := v_delta + (v_next - v_code) * (v_done + 1);
    v_code := v_next;
    foreach v_one in array v_codes loop
      v_delta := v_delta + case when v_one < v_code then 1 else 0 end;
      if v_one = v_code then
        v_made := v_made || public.punycode_digits(v_delta, v_bias);
        v_bias := public.punycode_bias(v_delta, v_done + 1, v_done = length(v_ascii));
        v_delta := 0;
        v_done := v_done + 1;
      end if;
    end loop;
    v_delta := v_delta + 1;
    v_code := v_code + 1;
  end loop;
  return 'xn--' || v_made;
end
$$;

-- Writes a host in lower case and ASCII, without its closing dot and the names that mean the same.
create or replace function public.canonical_host(p_host text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host text := lower(p_host);
begin
  if v_host ~ '[^\x01-\x7f]' and octet_length(v_host) <= 1000 then
    v_host := lower(normalize(v_host, nfkc));
    v_host := (
      select string_agg(
        case when l.label ~ '[^\x01-\x7f]' then public.punycode(l.label) else l.label end, '.'
        order by l.place)
      from regexp_split_to_table(v_host, '[.。]') with ordinality l(label, place));
  end if;
  v_host := regexp_replace(rtrim(v_host, '.'), '^((www|m|mobile)\.)+(?=[^.]+\.)', '');
  return case
    when v_host ~ '(^|\.)linkedin\.com$' then 'www.linkedin.com'
    when v_host ~ '(^|\.)indeed\.com$' then 'www.indeed.com'
    when v_host in ('job-boards.greenhouse.io', 'job-boards.eu.greenhouse.io')
      then replace(v_host, 'job-boards', 'boards')
    else v_host
  end;
end
$$;

-- Writes one run of escapes, such as %c3%a9 or %7E, as the letters that need none and the rest in
-- capitals. What is no UTF-8 keeps its escapes.
create or replace function public.plain_escapes(p_escapes text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select string_agg(
      case when c.letter ~ '[^\x01-\x7f]|[A-Za-z0-9._~-]' then c.letter
        else '%' || upper(lpad(to_hex(ascii(c.letter)), 2, '0')) end, '' order by c.place)
    from regexp_split_to_table(
      convert_from(decode(replace(p_escapes, '%', ''), 'hex'), 'utf8'), '')
      with ordinality c(letter, place));
exception when character_not_in_repertoire or untranslatable_character then
  return upper(p_escapes);
end
$$;

-- Writes what of a path or query may be spelt in several ways in one: letters that need no escape
-- stand without, others are composed (NFC) and escaped as UTF-8 in capitals.
create or replace function public.canonical_escapes(p_text text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := p_text;
begin
  if p_text !~ '[^!-~]|["<>`{}|\\^%]' then
    return p_text;
  end if;
  -- Most escapes stand as they should: in capitals, of no letter that needs none, and of none that
  -- may compose with another. To find out so much takes a tenth of the time.
  if p_text !~ '[^!-~]|["<>`{}|\\^]|%(?![0-9A-F]{2})'
    and p_text !~ '%(2D|2E|3\d|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])'
    and p_text !~ '%(CC|CD|D9%9|E0|E1|E3%82%9|EF)' then
    return p_text;
  end if;
  v_text := normalize((
    select string_agg(
      case when r.part ~ '^(%[0-9A-Fa-f]{2})+$' then public.plain_escapes(r.part)
        else r.part end, '' order by r.place)
    from (
      select m[1] as part, n as place
      from regexp_matches(p_text, '((?:%[0-9A-Fa-f]{2})+|[^%]+|%)', 'g') with ordinality x(m, n)
    ) r), nfc);
  return (
    select string_agg(
      case when c.letter ~ '[^!-~]|["<>`{}|\\^]'
        then upper(regexp_replace(encode(convert_to(c.letter, 'utf8'), 'hex'), '..', '%\&', 'g'))
        else c.letter end, '' order by c.place)
    from regexp_split_to_table(v_text, '') with ordinality c(letter, place));
end
$$;

-- Takes /./ and /../ out of a path.
create or replace function public.canonical_path(p_path text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text := public.canonical_escapes(p_path);
  v_last text;
begin
  while v_path ~ '/\.\.?(/|$)' and v_path is distinct from v_last loop
    v_last := v_path;
    v_path := regexp_replace(v_path, '/\.(/|$)', '/');
    if v_path = v_last then
      v_path := regexp_replace(v_path, '^(/\.\.)+(/|$)|/(?!\.\./)[^/]*/\.\.(/|$)', '/');
    end if;
  end loop;
  return rtrim(v_path, '/');
end
$$;

-- Names the parameters of a host that say how somebody came to a page, in lower case, as a regular
-- expression: those that track wherever they stand (clean-url.ts has the same), and those that this
-- host is known to add. Others of the same name may say what the page shows, such as ref, source or
-- position.
create or replace function public.tracking_parameters(p_host text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select '^((utm|pk|mtm|piwik|matomo|hsa)_.*|lever-source.*|fbclid|gclid|gclsrc|dclid|gbraid|wbraid'
    || '|gad_source|gad_campaignid|srsltid|msclkid|yclid|ysclid|_openstat|twclid|ttclid|li_fat_id'
    || '|epik|irclickid|igshid|igsh|mc_cid|mc_eid|ml_subscriber_hash|mkt_tok|oly_anon_id|oly_enc_id'
    || '|vero_id|wickedid|_branch_match_id|_ga|_gl|_hsenc|_hsmi|__hssc|__hstc|__hsfp|hsctatracking'
    || '|elqtrackid|et_rid|dm_i|wt_mc|wt_zmc|ref_src|ref_url|guccounter|guce_referrer'
    || '|guce_referrer_sig|cmpid|ncid|sr_share|s_cid|xtor|spm|at_medium|at_campaign|at_custom1'
    || '|at_custom2|gh_src'
    || case p_host
      when 'www.linkedin.com' then '|trk.*|refid|trackingid|lipi|licu|originalsubdomain|position'
        || '|pagenum|eb[cp]|midtoken|midsig|otptoken'
      when 'www.indeed.com' then '|from|tk|advn|adid|sjdu|xkcb|vjs'
      when 'x.com' then '|s|t'
      when 'youtube.com' then '|si|feature'
      else ''
    end || ')$'
$$;

-- Keeps the parameters that say what a page of a host shows, in the order of their names.
create or replace function public.canonical_query(p_host text, p_query text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select coalesce('?' || string_agg(q.part, '&' order by q.part collate "C"), '')
  from unnest(string_to_array(public.canonical_escapes(p_query), '&')) q(part)
  where q.part <> ''
    and lower(split_part(q.part, '=', 1)) !~ (select public.tracking_parameters(p_host))
$$;

-- Tells the part of a web address that says what it leads to: the host without the names that mean
-- the same, the path without its last slash, the parameters that are not known to track, and a
-- fragment that names a page (#/jobs/7). Null for what is no web address.
create or replace function public.canonical_address(p_text text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Blanks of any width, those of none included, and marks of a text's direction.
  v_blanks constant text := '[\s\u0085\u00a0\u00ad\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f'
    || '\u3000\ufeff]+';
  v_text text := regexp_replace(p_text, '^' || v_blanks || '|' || v_blanks || '$', '', 'g');
  v_parts text[];
  v_host text;
  v_path text;
begin
  if v_text ~ '^[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+(:\d+)?(/\S*)?$' then
    v_text := 'https://' || v_text;
  end if;
  v_parts := regexp_match(v_text,
    '^[hH][tT][tT][pP][sS]?://(?:[^/?#]*@)?([^/?#:@\s]+)(?::(\d*))?((?:/[^?#\s]*)?)(\?[^#\s]*)?'
      || '(#\S*)?$');
  if v_parts is null then
    return null;
  end if;
  v_host := public.canonical_host(v_parts[1]);
  v_path := public.canonical_path(v_parts[3]);
  return 'https://' || v_host
    || case when coalesce(v_parts[2], '') in ('', '80', '443') then '' else ':' || v_parts[2] end
    || case when v_path = '' then '/' else v_path end
    || case when v_parts[4] is null then ''
      else public.canonical_query(v_host, substr(v_parts[4], 2)) end
    || case when v_parts[5] ~ '^#!?/.' then public.canonical_escapes(v_parts[5]) else '' end;
end
$$;
comment on function public.canonical_address(text) is
  'The one form of a web address, by which links and articles are told apart; null for no address.';

revoke all on function public.punycode_digits(int, int), public.punycode_bias(int, int, boolean),
  public.punycode(text), public.canonical_host(text), public.plain_escapes(text),
  public.canonical_escapes(text), public.canonical_path(text), public.tracking_parameters(text),
  public.canonical_query(text, text), public.canonical_address(text)
  from public, anon, authenticated, service_role;
grant execute on function public.punycode_digits(int, int),
  public.punycode_bias(int, int, boolean), public.punycode(text), public.canonical_host(text),
  public.plain_escapes(text), public.canonical_escapes(text), public.canonical_path(text),
  public.tracking_parameters(text), public.canonical_query(text, text),
  public.canonical_address(text)
  to service_role;
