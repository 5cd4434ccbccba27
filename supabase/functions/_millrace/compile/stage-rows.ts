import type { PipelineOptions, StageDefinition } from '../define/definition-schema.ts';
import { snakeKeys } from './snake-keys.ts';
import { stagesAfter } from './stage-order.ts';
import { showsInLayer, showsOf } from './status-values.ts';

/** A stage as millrace.stages and millrace.version_stages hold it, with names where these have ids. */
export interface StageRow {
  name: string;
  kind: string;
  /** Left out by the kinds that no function runs. */
  function_name?: string | undefined;
  child?: { pipeline: string; insert?: string } | undefined;
  after?: { map: string; stage: string; kind: string; n: number }[];
  limits?: { back_pressure?: BackPressure | BackPressure[]; shared?: string[] } | undefined;
  [column: string]: unknown;
}

interface BackPressure {
  stage: string;
}

/** Kinds that wait for a person, a child run or room: no worker claims them as soon as their needs are done. */
const passive = ['manual', 'pipeline', 'gate'];
/** Kinds that a version of the graph names, since a run that has begun goes on by them. */
const kindsOfGraph = [...passive, 'map'];
const week = 604_800;
/** A service takes what it is sent, however long its queue; so an external stage has at most so many in flight. */
const external = { max_in_flight: 100 };

const seconds = (count: number | null | undefined) => (typeof count === 'number' ? `${count} s` : undefined);

/** Returns the rows of a definition's stages, in the order of the definition. */
export function stageRows({ entity, stages }: PipelineOptions, order: string[]): StageRow[] {
  const later = stagesAfter(stages);
  const waiting = conditional(stages, later);
  return Object.entries(stages).map(([name, stage]) => ({
    ...settings(name, stage),
    shows: snakeKeys(showsInLayer(entity.status, name, showsOf(stage))),
    ...inGraph(stage),
    position: order.indexOf(name) + 1,
    dependents: later[name] ?? [],
    is_sink: !Object.values(stages).some(({ needs }) => needs.includes(name)),
    unconditional: !waiting.has(name),
  }));
}

/** Settings of a stage's work, which apply at once. */
function settings(name: string, stage: StageDefinition): StageRow {
  const given = stage as Partial<Extract<StageDefinition, { kind: 'agent' }>> & Record<string, unknown>;
  const { concurrency, batchSize, maxWorkers, limits } = given;
  const { completion } = stage as { completion?: { callback: boolean; pollSeconds: number | null } };
  return {
    name,
    kind: stage.kind,
    function_name: given.function,
    host: given.host === 'worker' ? 'worker' : undefined,
    batch_size: batchSize ?? (concurrency === undefined ? 10 : Math.min(50, concurrency)),
    max_workers: maxWorkers ?? (concurrency === undefined ? 2 : Math.ceil(concurrency / 50)),
    concurrency,
    lease: seconds(given.leaseSeconds ?? 60),
    timeout: seconds(given.timeoutSeconds ?? 30),
    retry: snakeKeys(given.retry ?? {}),
    callback: completion?.callback ?? false,
    poll_every: seconds(completion?.pollSeconds),
    deadline: seconds(deadlineOf(stage)),
    apply: given.apply,
    result_limit_bytes: given.resultLimitBytes ?? 1_048_576,
    on_failure: given.onFailure ?? 'fail_run',
    ...(snakeKeys({ child: given.child, fanIn: given.fanIn, decision: given.decision, agent: given.agent }) as object),
    limits: limitsOf(stage.kind, limits),
    has_groups: limits?.concurrency !== undefined,
    when_spent: given.whenSpent ?? 'wait',
    sla: seconds(given.slaSeconds),
    enabled: given.enabled,
  };
}

function limitsOf(kind: string, limits: unknown): StageRow['limits'] {
  if (kind !== 'external') return snakeKeys(limits) as StageRow['limits'];
  return { ...external, ...(snakeKeys(limits ?? {}) as object) } as StageRow['limits'];
}

/** How long a stage may wait: for a service as its completion says, for people or children a week unless it says otherwise. */
function deadlineOf(stage: StageDefinition): number | undefined {
  if ('completion' in stage && stage.completion) return stage.completion.deadlineSeconds;
  if (stage.kind === 'manual') return stage.decision?.deadlineSeconds ?? week;
  if (stage.kind === 'map') return stage.fanIn?.deadlineSeconds ?? week;
  return stage.kind === 'pipeline' ? week : undefined;
}

/** Fields of a stage that belong to a version: when it begins, and how it ends runs. */
function inGraph(stage: StageDefinition): object {
  const { when, given } = stage;
  return {
    needs: [...stage.needs].sort(),
    when_path: when,
    otherwise: when === undefined ? undefined : (stage.otherwise ?? 'skip'),
    given_path: given,
    on_demand: stage.onDemand ?? false,
    ends: endsOf(stage),
    after: (stage.after ?? []).map(({ map, stage: counted, count, consecutive }) => ({
      map,
      stage: counted,
      kind: count !== undefined ? 'count' : consecutive !== undefined ? 'consecutive' : 'all',
      n: count ?? consecutive ?? 0,
    })),
  };
}

/** Endings as a list, since jsonb keeps no order of names. */
function endsOf(stage: StageDefinition): object[] | undefined {
  const ends = 'ends' in stage ? stage.ends : undefined;
  return ends && Object.entries(ends).map(([name, when]) => ({ name, when }));
}

/** Finds the stages that do not begin as soon as their needs are done, so that the engine must look at each. */
function conditional(stages: Record<string, StageDefinition>, later: Record<string, string[]>): Set<string> {
  const found = Object.entries(stages).flatMap(([name, stage]) => {
    const own = stage.when ?? stage.after ?? stage.given;
    const skips = stage.otherwise === 'skip_dependents' || stage.onDemand ? (later[name] ?? []) : [];
    return [...(own !== undefined || stage.onDemand || passive.includes(stage.kind) ? [name] : []), ...skips];
  });
  return new Set(found);
}

/** The versioned part of a definition: each stage's needs, or an object of these and of what else says how it begins and ends. */
export function graphOf(stages: Record<string, StageDefinition>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(stages).map(([name, stage]) => {
      const { when, otherwise, after, given, kind, onDemand } = stage;
      const more = {
        when,
        otherwise,
        after: snakeKeys(after),
        given,
        on_demand: onDemand || undefined,
        ends: endsOf(stage),
        child: 'child' in stage ? stage.child?.pipeline : undefined,
        kind: kindsOfGraph.includes(kind) ? kind : undefined,
      };
      const needs = [...stage.needs].sort();
      const plain = Object.values(more).every((value) => value === undefined);
      return [name, plain ? needs : { ...more, needs }];
    }),
  );
}
