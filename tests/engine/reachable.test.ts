import { expect } from 'vitest';
import { type Engine, projectTest as test } from '../support/engine.ts';

// The functions and tables that a stolen publishable key (anon) and a signed-in tenant (authenticated) can reach. A function or table missing here fails the test:
// revoke it by name in its migration, or, where somebody needs it, add it with the reason.

/** Each asks millrace.operators before anything else, and refuses who is none. */
const ofOperators = Object.fromEntries(
  [
    ...['act', 'alerts', 'attempt', 'costs', 'dead_letters', 'journal', 'overview'],
    ...['pipeline', 'run', 'runs', 'search', 'limits', 'status', 'settings', 'series', 'touched'],
  ].map((name) => [
    `authenticated public.millrace_${name}(jsonb)`,
    'for operators: asks at each call whether one calls',
  ]),
);

/** Functions of ours that these roles, or PUBLIC, may execute. */
const functions: Record<string, string> = {
  'authenticated public.clerk_org_id()':
    'policies on documents call it: says the organisation in the caller’s own token',
  'authenticated public.too_long(text,bigint,bigint)':
    'check constraints of articles call it: raises the refusal, and reads nothing',
  'authenticated public.search_memos(real[],text,integer)': 'finds memos near a vector; with the rights of its caller',
  'authenticated public.is_curator()': 'policies on articles call it: reads the caller’s own token',
  'authenticated public.track_publication_edit(uuid,uuid,jsonb,jsonb,text)':
    'saves a curator’s edit of a published article; with the rights of its caller',
  'anon public.millrace_progress(jsonb,uuid)': 'shows the progress of rows; with the rights of its caller on them',
  'anon millrace_evidence.progress_of(jsonb,uuid,jsonb,text)':
    'millrace_progress calls it with the rows that the caller sees; no right to name it',
  'anon millrace_evidence.visible_rows(text,text,text,text[])':
    'millrace_progress calls it; selects rows with the rights of its caller; no right to name it',
  'anon millrace_evidence.watched_tables(jsonb)':
    'millrace_progress calls it; reads definitions alone; no right to name it',
  'authenticated public.millrace_progress(jsonb,uuid)':
    'shows the progress of rows; with the rights of its caller on them',
  'authenticated millrace_evidence.progress_of(jsonb,uuid,jsonb,text)':
    'millrace_progress calls it with the rows that the caller sees; no right to name it',
  'authenticated millrace_evidence.visible_rows(text,text,text,text[])':
    'millrace_progress calls it; selects rows with the rights of its caller; no right to name it',
  'authenticated millrace_evidence.watched_tables(jsonb)':
    'millrace_progress calls it; reads definitions alone; no right to name it',
  'authenticated public.millrace_decide(bigint,jsonb)': 'takes a person’s decision; row-level security says whose',
  ...ofOperators,
  'authenticated millrace_evidence.document_job(uuid)':
    'the view pipeline_job calls it with the documents that the caller sees; no right to name it',
  'authenticated millrace_evidence.document_phases(uuid)':
    'the view pipeline_phase calls it with the documents that the caller sees; no right to name it',
  'authenticated millrace_evidence.entity_costs(text,text[])':
    'the views of costs call it with the rows that the caller sees; no right to name it',
};

/** Tables, views and sequences of ours, with what may be done there; row-level security says with which rows. */
const relations: Record<string, string> = {
  'anon public.publication': 'select',
  'authenticated public.article_backlog': 'select',
  'authenticated public.article_ready': 'select',
  'authenticated public.article_state_times': 'select',
  'authenticated public.book_costs': 'select',
  'authenticated public.book_pipeline_status': 'select',
  'authenticated public.books': 'delete, insert, select, update',
  'authenticated public.chunk': 'select',
  'authenticated public.document': 'delete, insert, select, update',
  'authenticated public.document_costs': 'select',
  'authenticated public.ingestion_queue': 'delete, insert, select, update',
  'authenticated public.kg_edge': 'select',
  'authenticated public.kg_entity': 'select',
  'authenticated public.kg_mention': 'select',
  'authenticated public.lead_costs': 'select',
  'authenticated public.lead_pipeline_status': 'select',
  'authenticated public.leads': 'delete, insert, select, update',
  'authenticated public.pages': 'select, update',
  'authenticated public.memo_chunks': 'select',
  'authenticated public.memos': 'delete, insert, select, update',
  'authenticated public.millrace_decisions': 'select, update',
  'authenticated public.pipeline_job': 'select',
  'authenticated public.pipeline_phase': 'select',
  'authenticated public.publication': 'select',
  'authenticated public.publication_edit_history': 'select',
  'authenticated public.source': 'delete, insert, select, update',
  'authenticated public.status_history': 'select',
  'authenticated public.status_lookup': 'select',
  'authenticated public.tag': 'delete, insert, select, update',
  'authenticated public.topic': 'delete, insert, select, update',
};

const ours = "n.nspname in ('public', 'millrace', 'millrace_evidence')";
const roles = "(values ('anon'), ('authenticated'), ('public')) r(role)";

async function reachable(engine: Engine, statement: string): Promise<string[]> {
  const rows = await engine.rows<{ name: string }>(statement);
  return rows.map(({ name }) => name);
}

test('anon and authenticated can execute these functions and no others, each for a reason', async ({ engine }) => {
  const found = await reachable(
    engine,
    `select format('%s %s.%s(%s)', r.role, n.nspname, p.proname, replace(oidvectortypes(p.proargtypes), ', ', ',')) as name
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace cross join ${roles}
     where ${ours} and p.prorettype <> 'trigger'::regtype
       and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
       and has_function_privilege(r.role, p.oid, 'execute')`,
  );
  expect(found.sort()).toEqual(Object.keys(functions).sort());
});

test('anon and authenticated can reach these tables, views and sequences and no others', async ({ engine }) => {
  const found = await reachable(
    engine,
    `select format('%s %s.%s: %s', r.role, n.nspname, c.relname, string_agg(w.right, ', ' order by w.right)) as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace cross join ${roles}
     cross join (values ('select'), ('insert'), ('update'), ('delete')) w("right")
     where ${ours} and c.relkind in ('r', 'p', 'v', 'm', 'S') and case
       when c.relkind = 'S' then w.right in ('select', 'update') and has_sequence_privilege(r.role, c.oid, w.right)
       when w.right = 'delete' then has_table_privilege(r.role, c.oid, w.right)
       else has_any_column_privilege(r.role, c.oid, w.right) end
     group by r.role, n.nspname, c.relname`,
  );
  expect(found.sort()).toEqual(
    Object.entries(relations)
      .map(([name, rights]) => `${name}: ${rights}`)
      .sort(),
  );
});

test('each table that they can reach has row-level security, and each view goes by its caller’s', async ({
  engine,
}) => {
  expect(
    await reachable(
      engine,
      `select distinct c.oid::regclass::text as name
       from pg_class c join pg_namespace n on n.oid = c.relnamespace cross join ${roles}
       where ${ours} and c.relkind in ('r', 'p', 'v', 'm')
         and (has_any_column_privilege(r.role, c.oid, 'select, insert, update') or has_table_privilege(r.role, c.oid, 'delete'))
         and not c.relrowsecurity and not coalesce('security_invoker=true' = any (c.reloptions), false)`,
    ),
  ).toEqual([]);
});
