// Random pipelines for property tests: `flow` over items, with maps over `parts` and child runs of `sub`, each with
// conditions, thresholds, failure policies, limits, gates, and stages that rows bring along, that people begin or that end runs. In half of them `beside` runs over the same rows as `flow`. fast-check makes them, and makes a failing one smaller.
import fc from 'fast-check';
import type { Engine, Row, StageDefinition } from '../engine.ts';

export interface Graph {
  projection: 'columns' | 'status' | 'none';
  flow: StageDefinition[];
  parts: StageDefinition[];
  sub: StageDefinition[];
  /** A second pipeline over the rows of `flow`; empty where there is none. */
  beside: StageDefinition[];
  /** Definitions that `flow` is given in turn, where it has several. */
  definitions?: Row[];
}

const external = { kind: 'external', completion: { callback: true, poll_seconds: 5, deadline_seconds: 60 } };

const settings = fc.record({
  on_failure: fc.constantFrom('fail_run', 'fail_run', 'continue'),
  retry: fc.record({
    max_attempts: fc.integer({ min: 1, max: 3 }),
    backoff: fc.constant({ kind: 'list', seconds: [0, 10] }),
  }),
  sla_seconds: fc.option(fc.constantFrom(5, 60), { nil: undefined }),
});

const limits = fc.option(
  fc.constantFrom<Row>(
    { max_in_flight: 1 },
    { rate: { count: 2, per_seconds: 10 } },
    { concurrency: { column: 'label', part: 'value', limit: 1 } },
    { shared: ['all'] },
    { shared: ['all'], max_in_flight: 2 },
    { back_pressure: { backlog: 2 } },
  ),
  { freq: 3, nil: undefined },
);

const fanIn = fc.option(
  fc.record<Row>({ failed_children: fc.constantFrom('fail', 'ignore', 'ignore'), deadline_seconds: fc.constant(200) }),
  { freq: 4, nil: undefined },
);

interface Draft {
  kind: string;
  needs: number[];
  when: number;
  otherwise: string;
  threshold: Row | null;
  beginning: Row;
  ends: Row[] | undefined;
  settings: Row;
  limits: Row | undefined;
  fanIn: Row | undefined;
}

const draft = (kinds: string[]) =>
  fc.record<Draft>({
    kind: fc.constantFrom(...kinds),
    needs: fc.uniqueArray(fc.nat(5), { maxLength: 3 }),
    when: fc.nat(9),
    otherwise: fc.constantFrom('skip', 'skip', 'skip_dependents'),
    threshold: fc.option(fc.constantFrom<Row>({ count: 2 }, { count: 9 }, { consecutive: 2 }, { all: true }), {
      freq: 2,
    }),
    beginning: fc.oneof(
      { weight: 6, arbitrary: fc.constant({}) },
      { weight: 1, arbitrary: fc.constant({ given: '$.entity.label == "yes"' }) },
      { weight: 1, arbitrary: fc.constant({ on_demand: true }) },
    ),
    ends: fc.option(
      fc.constantFrom<Row[]>(
        [{ name: 'refused', when: '$.result.ok == false' }],
        [
          { name: 'dropped', when: '$.entity.label == "no" && $.result.attempt.type() == "number"' },
          { name: 'refused', when: '$.result.ok == false' },
        ],
      ),
      { freq: 5, nil: undefined },
    ),
    settings,
    limits,
    fanIn,
  });

/** The condition of a stage: mostly none, else on the entity or on a result that it needs. */
function condition(roll: number, needs: string[]): string | undefined {
  if (roll === 0) return '$.entity.label == "yes"';
  if (roll === 1) return '$.entity.label != "yes"';
  return roll === 2 && needs.length > 0 ? `$.needs.${needs[0]}.ok == true` : undefined;
}

/** A stage's definition from its draft, in a pipeline whose earlier stages are given. Options that do not fit are left out. */
function stage(
  prefix: string,
  place: number,
  made: Draft,
  earlier: StageDefinition[],
  children: string[],
): StageDefinition {
  // Behind its nearest stages, so that chains and joins are as likely as stages side by side.
  const near = made.needs.filter((back) => back < place).map((back) => `${prefix}${place - 1 - back}`);
  // A row has one live run of a pipeline: stages that start runs of the same one come one after the other.
  const rivals = earlier.filter(({ kind }) => kind === 'pipeline' && made.kind === 'pipeline').map(({ name }) => name);
  const needs = [...new Set([...near, ...rivals])];
  // A stage must begin: the first stage does by itself. A stage that a person begins has no conditions of its own.
  const beginning = place === 0 && made.beginning.on_demand ? {} : made.beginning;
  const when = beginning.on_demand ? undefined : condition(made.when, needs);
  const map = earlier.find((other) => other.kind === 'map');
  const after = map && made.threshold ? [{ map: map.name, stage: children.at(-1), ...made.threshold }] : undefined;
  const isGate = made.kind === 'gate';
  const worked = !['manual', 'pipeline', 'gate'].includes(made.kind);
  const limits =
    isGate && !['rate', 'back_pressure'].includes(Object.keys(made.limits ?? {})[0] ?? '') ? undefined : made.limits;
  return JSON.parse(
    JSON.stringify({
      name: `${prefix}${place}`,
      needs,
      ...(made.kind === 'external' ? external : { kind: made.kind }),
      ...made.settings,
      // Who waits for a person or a child run has no tries of its own.
      ...(worked ? {} : { retry: undefined }),
      ...(isGate ? { on_failure: undefined } : {}),
      ...(when ? { when, otherwise: made.otherwise } : {}),
      after,
      ...beginning,
      ends: isGate ? undefined : made.ends,
      ...(made.kind === 'manual' ? { decision: { deadline_seconds: 100 } } : {}),
      ...(made.kind === 'pipeline' ? { child: { pipeline: prefix === 'p' ? 'leaf' : 'sub' } } : {}),
      ...(made.kind === 'map'
        ? { child: { pipeline: 'parts', insert: 'public.insert_parts' }, fan_in: made.fanIn }
        : {}),
      ...(worked ? { max_workers: 50 } : {}),
      ...(worked || isGate ? { limits } : {}),
    }),
  );
}

function stages(prefix: string, drafts: Draft[], children: string[] = []): StageDefinition[] {
  const made: StageDefinition[] = [];
  for (const [place, one] of drafts.entries()) made.push(stage(prefix, place, one, made, children));
  return made.map((one) => heldBack(one, made));
}

/** A stage that is held back, by the last of those that come after it; where none does, by nothing. */
function heldBack({ limits, ...one }: StageDefinition, all: StageDefinition[]): StageDefinition {
  if (!limits) return one;
  const { back_pressure: pressure } = limits as { back_pressure?: Row };
  if (!pressure) return { ...one, limits };
  const later = new Set([one.name]);
  for (const { name, needs = [] } of all) if (needs.some((need) => later.has(need))) later.add(name);
  const last = [...later].at(-1);
  return last === one.name ? one : { ...one, limits: { back_pressure: { ...pressure, stage: last } } };
}

/** Graphs of two to eight stages, over child pipelines of one to three. */
export const graphs: fc.Arbitrary<Graph> = fc
  .record({
    projection: fc.constantFrom('columns' as const, 'columns' as const, 'none' as const),
    flow: fc.array(draft(['function', 'function', 'external', 'manual', 'gate', 'map', 'map', 'pipeline']), {
      minLength: 2,
      maxLength: 8,
    }),
    parts: fc.array(draft(['function', 'function', 'external', 'manual', 'gate', 'pipeline']), {
      minLength: 1,
      maxLength: 3,
    }),
    sub: fc.array(draft(['function', 'external', 'manual', 'gate']), { minLength: 1, maxLength: 2 }),
    beside: fc.option(fc.array(draft(['function', 'external', 'manual', 'pipeline']), { minLength: 1, maxLength: 2 }), {
      freq: 2,
      nil: [],
    }),
  })
  .map(({ projection, ...drafts }) => {
    const parts = stages('p', drafts.parts);
    const names = parts.map(({ name }) => name);
    const beside = stages('o', drafts.beside);
    return { projection, parts, sub: stages('s', drafts.sub), flow: stages('f', drafts.flow, names), beside };
  });

const tables = `
  create table public.items (id bigint generated by default as identity primary key, label text, metadata jsonb default '{"org": "a"}');
  create table public.parts (id bigint generated by default as identity primary key, parent text, key text, label text, unique (parent, key));
  create function public.insert_parts(p_parent text, p_items jsonb) returns table (item_key text, entity_id text) language plpgsql as $$
  begin
    insert into public.parts (parent, key) select p_parent, i ->> 'key' from jsonb_array_elements(p_items) i on conflict do nothing;
    return query select p.key, p.id::text from public.parts p join jsonb_array_elements(p_items) i on i ->> 'key' = p.key where p.parent = p_parent;
  end $$;
  insert into public.items (label) values ('yes'), ('no'), ('yes');`;

/** Empties the engine and defines a graph's pipelines over fresh tables of three items. */
export async function defineGraph(engine: Engine, graph: Graph): Promise<void> {
  await engine.sql.query(`
    drop table if exists public.items, public.parts; drop function if exists public.insert_parts;
    delete from millrace.pipelines;
    update public.test_clock set at = '2026-11-02 09:00:00+00'`);
  // Nobody empties the journal, and no rule here reads it.
  const kept = ['pipelines', 'stages', 'versions', 'version_stages', 'settings', 'releases', 'journal'];
  const own = await engine.rows<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where (schemaname = 'millrace' and tablename <> all ($1)) or tablename = 'millrace_decisions'`,
    [kept],
  );
  await engine.sql.query(`truncate ${own.map(({ name }) => name).join(', ')} restart identity; ${tables}`);
  const { projection } = graph;
  await engine.sql.query(`select millrace.define_limit('all', $1)`, [
    JSON.stringify({ max_in_flight: 3, rate: { count: 4, per_seconds: 10 }, spending: { usd: 100, per_seconds: 60 } }),
  ]);
  const leaf = [{ name: 'l0', max_workers: 50 }];
  await engine.pipeline(leaf, { table: 'public.parts', projection }, 'leaf');
  await engine.pipeline(graph.parts, { table: 'public.parts', projection }, 'parts');
  await engine.pipeline(graph.sub, { projection }, 'sub');
  const entity = { projection, metadata: 'metadata' };
  await engine.pipeline(graph.flow, entity, 'flow');
  if (graph.beside.length > 0) await engine.pipeline(graph.beside, entity, 'beside');
}
