// Writes that are tried and undone: what each would do to an article, or why it is refused.
import type { Engine, Row } from '../engine.ts';

export interface Tried {
  /** The code written; null too. */
  code: number | null;
  /** The status that the row shows then. */
  shows?: number;
  entry_type?: string;
  /** The live attempt of its run: `<stage> <state>`, or null. */
  live?: string | null;
  /** The entries that went into its history: `<from>><to> <by>`. */
  steps?: string[];
  /** The breaches that check_invariants() finds then. */
  faults?: string[] | null;
  refused?: string;
  message?: string;
  hint?: string;
}

const outcome = (write: string) => `
  declare
    v_last uuid := coalesce((
      select h.id from public.status_history h order by h.id desc limit 1), '00000000-0000-0000-0000-000000000000');
    v_id uuid; v_state text; v_said text; v_hint text;
  begin
    ${write}
    raise exception '%', (
      select jsonb_build_object('shows', q.status_code, 'entry_type', q.entry_type, 'live', (
          select string_agg(s.name || ' ' || a.state, ', ')
          from millrace.runs r
          join millrace.attempts a on a.run_id = r.id and a.state in ('queued', 'started', 'waiting')
          join millrace.stages s on s.id = a.stage_id
          where r.entity_id = v_id::text and r.status = 'running'),
        'steps', (
          select coalesce(jsonb_agg(coalesce(h.from_status::text, '') || '>' || h.to_status || ' ' || h.changed_by
            order by h.id), '[]')
          from public.status_history h
          where h.queue_id = v_id and h.id > v_last),
        'faults', (select jsonb_agg(f.detail) from millrace.check_invariants() f))
      from public.ingestion_queue q
      where q.id = v_id)
      using errcode = 'TRIED';
  exception when others then
    get stacked diagnostics v_state = returned_sqlstate, v_said = message_text, v_hint = pg_exception_hint;
    return case v_state when 'TRIED' then v_said::jsonb
      else jsonb_build_object('refused', v_state, 'message', v_said, 'hint', v_hint) end;
  end`;

/** Makes the functions that try. */
export async function makeTrials(engine: Engine): Promise<void> {
  await engine.sql.query(`
    create function public.try_code(p_id uuid, p_code int) returns jsonb language plpgsql as $$
    ${outcome(`v_id := p_id;
    update public.ingestion_queue set status_code = p_code where id = p_id;`)} $$;
    create function public.try_insert(p_row jsonb, p_code int) returns jsonb language plpgsql as $$
    ${outcome(`insert into public.ingestion_queue
      (url, title, content, summary, tags, thumbnail_url, entry_type, status_code)
    select r.url, r.title, r.content, r.summary, r.tags, r.thumbnail_url, r.entry_type, p_code
    from jsonb_populate_record(null::public.ingestion_queue, p_row) r
    returning id into v_id;`)} $$;
    -- Every code that there is, one that is none, and null.
    create view public.tried_codes as
      select code::int from public.status_lookup union all values (999), (null)`);
}

const rowsOf = (call: string) => `select c.code, ${call} as got from public.tried_codes c order by c.code`;

/** Tries to write each code to an article. */
export async function tryCodes(engine: Engine, id: string): Promise<Tried[]> {
  return flat(await engine.rows(rowsOf('public.try_code($1, c.code)'), [id]));
}

/** Tries to insert an article with each code. */
export async function tryInserts(engine: Engine, row: Row): Promise<Tried[]> {
  return flat(await engine.rows(rowsOf('public.try_insert($1, c.code)'), [row]));
}

const flat = (rows: Row[]) => rows.map(({ code, got }) => ({ code, ...(got as object) }) as Tried);

/** All that could have changed, as one text. */
export async function everything(engine: Engine): Promise<string> {
  const tables = ['public.ingestion_queue', 'public.status_history', 'public.millrace_decisions', 'millrace.runs'];
  const texts: string[] = [];
  for (const table of [...tables, 'millrace.attempts']) {
    texts.push(
      await engine.value<string>(`select coalesce(string_agg(t::text, e'\\n' order by t::text), '') from ${table} t`),
    );
  }
  return texts.join('\n\n');
}
