// The work that the database does with a tenant's text takes time in proportion to it, whatever the text holds.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storableText } from '../../supabase/functions/_millrace/errors.ts';
import { createEngine, type Engine } from '../support/engine.ts';
import { growthFault, type TextTimer } from '../support/examples/growth.ts';

let engine: Engine;
const id = '00000000-0000-0000-0000-000000000001';
const sent = new Set<string>();

beforeAll(async () => {
  engine = await createEngine('project');
  await engine.sql.query(`
    create table public.hostile_texts (name text primary key, text text not null);
    alter table public.hostile_texts alter column text set storage external;
    create function public.work_on(p_statement text, p_text text) returns void language plpgsql as $$
    begin
      execute p_statement using p_text;
    end
    $$;
    create function public.time_of(p_statement text, p_name text) returns float8 language plpgsql as $$
    declare
      v_text text := (select t.text || '' from public.hostile_texts t where t.name = p_name);
      v_start timestamptz := clock_timestamp();
    begin
      begin
        perform public.work_on(p_statement, v_text);
      exception when data_exception or check_violation or program_limit_exceeded then
        -- A refusal is an answer.
        null;
      end;
      return extract(epoch from clock_timestamp() - v_start) * 1000;
    end
    $$;
    insert into public.document (id, source_path, metadata)
      values ('${id}', 'a/a', '{"clerk_org_id": "a", "source_name": "a"}');
    insert into public.chunk (id, document_id, ordinal, text, tokens, start_offset, end_offset)
      values ('${id}', '${id}', 1, 'a', 1, 0, 1)`);
});
afterAll(() => engine.database.drop());

const matches = (pattern: string) =>
  `select millrace.schema_fault('${JSON.stringify({ pattern })}', to_jsonb($1), 'decision')`;

const statements: Record<string, string> = {
  "a group's key": `select millrace.group_key($1, 'value')`,
  "a group's host": `select millrace.group_key($1, 'host')`,
  "a group's host in a URL": `select millrace.group_key('https://' || $1, 'host')`,
  "a name's key": 'select public.kg_key($1)',
  "an article's name": `select public.kg_key('the ' || $1)`,
  'a result that cannot be stored': `select millrace.storable_item(
    json_build_object('outcome', 'completed', 'result', to_json($1), 'more', $1)::text::json)`,
  'a result with a NUL': `select millrace.storable_item(
    ('{"outcome": "completed", "nul": "\\u0000", "result": ' || to_json($1) || '}')::json)`,
  'what is written as JSON': 'select millrace.storable_item($1::json)',
  'a value that a message shows': 'select millrace.cut_text(to_jsonb($1)::text, 100)',
  "a decision's field": `select millrace.schema_fault('{"additionalProperties": false}', jsonb_build_object($1, 1), 'd')`,
  'a decision by its length': `select millrace.schema_fault('{"maxLength": 10}', to_jsonb($1), 'd')`,
  'a decision by a pattern': matches('^[A-Z][a-z]+$'),
  'a decision by repetitions within repetitions': matches('^(([a-z ])+.)+[A-Z]([a-z ])+$'),
  'a decision by anything anywhere': matches('a.*b.*c$'),
  "a mail address' pattern": matches('[a-z0-9.]+@[a-z0-9.]+\\\\.[a-z]+$'),
  "a document's path": `insert into public.document (source_path, metadata)
    values ('a/' || $1, '{"clerk_org_id": "a", "source_name": "a"}')`,
  "a document's metadata": `insert into public.document (source_path, metadata)
    values ($1 || '/b', jsonb_build_object('clerk_org_id', $1, 'source_name', $1))`,
  "a chunk's facts": `select public.apply_facts(jsonb_build_array(jsonb_build_object('entity_id', '${id}', 'result',
    jsonb_build_object(
      'entities', jsonb_build_array(
        jsonb_build_object('name', $1, 'type', 'other', 'description', $1),
        jsonb_build_object('name', 'Ada ' || $1, 'type', 'other', 'description', $1)),
      'relations', jsonb_build_array(
        jsonb_build_object('source', $1, 'relation', 'met', 'target', 'Ada ' || $1, 'fact', $1))))))`,
  "a book's path": `insert into public.books (title, account_id, source_path, media_type) values ($1, '${id}', '${id}/' || $1, 'text/plain')`,
};

/** By the server's clock: what a text takes to get there is not counted, and each goes there once. */
function serverTime(statement: string): TextTimer {
  return async ({ name, text }) => {
    if (!sent.has(name)) {
      const storable = storableText(text);
      await engine.sql.query('insert into public.hostile_texts values ($1, $2)', [name, storable]);
      sent.add(name);
    }
    return engine.value<number>('select public.time_of($1, $2)', [statement, name]);
  };
}

test.each(Object.entries(statements))('%s', { timeout: 120_000 }, async (_, statement) => {
  // The function that refuses each text would be fast for nothing.
  await engine.sql.query('select public.work_on($1, $2)', [statement, '1']);
  expect(await growthFault(serverTime(statement))).toBeNull();
});
