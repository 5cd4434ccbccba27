// Random chains that show their runs in one status column, for property tests: conditions, failure policies, layers, gates, manual
// stages with steps and answers, stages that rows bring along, that people begin or that end runs.
import fc from 'fast-check';
import type { Engine, Row, StageDefinition } from '../engine.ts';
import type { Graph } from './random-graphs.ts';
import { oldValues } from './random-history.ts';
import { makeAdoption } from './status.ts';

interface Draft {
  kind: 'function' | 'external' | 'manual' | 'gate';
  when: number;
  beginning: Row;
  ends: Row[] | undefined;
  retry: Row;
  onFailure: string;
  backoff: boolean;
  alike: boolean;
  ownFailure: boolean;
}

export interface Chain {
  /** Its first definition, and others in which the stages of a layer change places. */
  graph: Graph & { definitions: Row[] };
}

const draft = fc.record<Draft>({
  kind: fc.constantFrom('function', 'function', 'external', 'manual', 'gate'),
  when: fc.nat(6),
  beginning: fc.oneof(
    { weight: 5, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constant({ given: '$.entity.label == "yes"' }) },
    { weight: 1, arbitrary: fc.constant({ on_demand: true }) },
  ),
  ends: fc.option(fc.constant([{ name: 'refused', when: '$.result.ok == false' }]), { freq: 4, nil: undefined }),
  retry: fc.record({
    max_attempts: fc.integer({ min: 1, max: 3 }),
    backoff: fc.constant({ kind: 'list', seconds: [0, 10] }),
  }),
  onFailure: fc.constantFrom('fail_run', 'fail_run', 'continue'),
  backoff: fc.boolean(),
  alike: fc.boolean(),
  ownFailure: fc.boolean(),
});

function shows(base: number, { kind, backoff, alike, ownFailure }: Draft): Row {
  const failed = ownFailure ? { timeout: base + 9, deadline: base + 9 } : {};
  if (kind === 'manual') {
    return {
      asked: base,
      interim: [base + 1],
      interim_moves: [
        [base, base + 1],
        [base + 1, base],
      ],
      answers: { [base + 2]: { from: [base, base + 1], decision: { ok: true } } },
      failed,
    };
  }
  if (kind === 'gate') return { queued: base, completed: base + 2, failed };
  const values = alike ? { queued: base, started: base } : { queued: base, started: base + 1 };
  return { ...values, completed: base + 2, ...(backoff ? { backoff: base + 3 } : {}), failed };
}

/** The stage of a draft, behind another one. */
function stage(made: Draft, draft: number, before: number | undefined): StageDefinition {
  const base = 100 * (draft + 1);
  const needs = before === undefined ? [] : [`f${before}`];
  // A stage must begin: the first stage does by itself. A stage that a person begins has no conditions of its own.
  const beginning = before === undefined && made.beginning.on_demand ? {} : made.beginning;
  const when = made.when === 0 && !beginning.on_demand ? { when: '$.entity.label == "yes"' } : {};
  const external = { completion: { callback: true, poll_seconds: 5, deadline_seconds: 60 } };
  const worked = { max_workers: 50, retry: made.retry };
  const own = {
    function: worked,
    external: worked,
    manual: { decision: { deadline_seconds: 100 } },
    gate: made.backoff ? { limits: { rate: { count: 1, per_seconds: 10 } } } : {},
  };
  return {
    name: `f${draft}`,
    kind: made.kind,
    needs,
    ...(made.kind === 'gate' ? {} : { on_failure: made.onFailure }),
    ...own[made.kind],
    ...(made.kind === 'external' ? external : {}),
    ...when,
    ...beginning,
    ...(made.ends && made.kind !== 'gate' ? { ends: made.ends } : {}),
    shows: shows(base, made),
  };
}

/** Every value that a chain may show, with names, under one category. */
function valuesOf(drafts: Draft[]): Row {
  const bases = drafts.flatMap((_, place) => [0, 1, 2, 3, 9].map((value) => 100 * (place + 1) + value));
  return { all: Object.fromEntries([...bases, 10, 19, 20, 29, 5, 6].map((code) => [code, [`v${code}`, 'A value']])) };
}

/** The numbers in one of their orders. */
function shuffled(numbers: number[], roll: number): number[] {
  const left = [...numbers];
  return numbers.map((_, place) => left.splice(Math.floor(roll / 7 ** place) % left.length, 1)[0] as number);
}

/** Chains of one to five stages, in two layers where they have more than one. */
export const chains: fc.Arbitrary<Chain> = fc
  .record({
    drafts: fc.array(draft, { minLength: 1, maxLength: 5 }),
    split: fc.nat(5),
    history: fc.boolean(),
    rolls: fc.array(fc.nat(20_000), { minLength: 1, maxLength: 2 }),
  })
  .map(({ drafts, split, history, rolls }) => {
    const cut = split % drafts.length;
    const layers = [drafts.slice(0, cut), drafts.slice(cut)].map((part, second) =>
      part.map((_, place) => second * cut + place),
    );
    const orders = [0, ...rolls].map((roll) => layers.flatMap((numbers) => shuffled(numbers, roll)));
    const flows = orders.map((order) => order.map((n, place) => stage(drafts[n] as Draft, n, order[place - 1])));
    const [first = [], second = []] = layers.map((numbers) => numbers.map((n) => `f${n}`));
    const status = {
      column: 'code',
      values: valuesOf(drafts),
      layers: {
        ...(cut > 0 ? { first: { stages: first, enter: 10, leave: 19 } } : {}),
        second: { stages: second, enter: 20, leave: 29 },
      },
      failed: 5,
      ends: { refused: 6 },
      lookup: 'public.codes',
      ...(history ? { history: { table: 'public.code_history', key: 'item', since: 'code_at' } } : {}),
      attempts: 'tries',
      retry_at: 'due_at',
      error: 'fault',
    };
    const entity = { table: 'public.items', key: 'id', projection: 'status', due: 'check_at', status };
    const definitions = flows.map((stages) => ({ pipeline: 'flow', entity, stages }));
    return { graph: { projection: 'status', flow: flows[0] ?? [], parts: [], sub: [], beside: [], definitions } };
  });

/** The meaning of old statuses: both gates, work in progress, a stage that is ready, one that is done, a failure. */
const meanings = [10, 20, 101, 100, 102, 5];

const tables = `
  create table public.codes (code smallint primary key, name text, description text, category text, is_terminal boolean, sort_order int);
  create table public.items (id bigint generated by default as identity primary key, label text, metadata jsonb,
    code smallint, code_at timestamptz, tries int not null default 0, due_at timestamptz, fault text, check_at timestamptz, was text);
  create index on public.items (check_at, id);
  create table public.parts (id bigint primary key, label text);
  create table public.code_history (id bigint generated always as identity primary key,
    item bigint not null references public.items on delete cascade, from_status smallint references public.codes,
    to_status smallint not null references public.codes, changed_at timestamptz not null, changed_by text not null,
    changes jsonb, duration_ms bigint);
  create index on public.code_history (item, id);
  create function public.meant(i public.items) returns smallint language sql as $$
    select case i.was ${oldValues.map((value, place) => `when '${value}' then ${meanings[place]}`).join(' ')} end $$;
  insert into public.items (label, was) values ('yes', null), ('no', null), ('yes', 'new'), ('no', 'at_work'), ('yes', 'done');`;

/** Empties the engine and defines a chain over a fresh table of five items, three of which had a status before. */
export async function defineChain(engine: Engine, { graph }: Chain): Promise<void> {
  await makeAdoption(engine);
  await engine.sql.query(`
    drop function if exists public.meant;
    drop table if exists public.code_history, public.items, public.parts, public.codes;
    delete from millrace.pipelines;
    update public.test_clock set at = '2026-11-02 09:00:00+00'`);
  // Nobody empties the journal, and no rule here reads it.
  const kept = ['pipelines', 'stages', 'versions', 'version_stages', 'version_moves', 'status_values', 'settings'];
  const own = await engine.rows<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where (schemaname = 'millrace' and tablename <> all ($1)) or tablename = 'millrace_decisions'`,
    [[...kept, 'releases', 'journal']],
  );
  await engine.sql.query(`truncate ${own.map(({ name }) => name).join(', ')} restart identity; ${tables}`);
  await engine.define(graph.definitions[0]);
}
