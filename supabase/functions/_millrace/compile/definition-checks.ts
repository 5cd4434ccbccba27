import type { PipelineOptions, StageDefinition } from '../define/definition-schema.ts';
import { pathsOf } from './condition-paths.ts';
import { stagesAfter, stagesBefore } from './stage-order.ts';

type Stages = Record<string, StageDefinition>;

/** Checks that each rule of a pipeline can be judged, at a stage that there is. Throws an error that names the field and the remedy. */
export function checkAlerts({ name: pipeline, alerts = {}, stages }: PipelineOptions): void {
  for (const [name, { kind, stage, above }] of Object.entries(alerts)) {
    if (stage !== undefined && stage !== '*' && !stages[stage]) {
      throw new Error(
        `alerts.${name}.stage names ${stage}, which pipeline ${pipeline} does not have: correct it, or write * for each stage.`,
      );
    }
    if (kind === 'run_sla' && stage !== undefined) {
      throw new Error(
        `alerts.${name}.stage is ${stage}, but the kind run_sla looks at a pipeline end to end: leave it out.`,
      );
    }
    if (above === undefined && kind !== 'run_sla' && kind !== 'late') {
      throw new Error(`alerts.${name}.above is missing: the kind ${kind} needs a bound.`);
    }
    if (kind === 'error_share' && above !== undefined && above >= 1) {
      throw new Error(`alerts.${name}.above is ${above}, but must be a share below 1, such as 0.1.`);
    }
  }
}

/** Checks what stages say of one another. Throws an error that names the field and the remedy. */
export function checkGraph(pipeline: string, stages: Stages): void {
  for (const [name, stage] of Object.entries(stages)) {
    checkNeeds(pipeline, name, stages);
    checkThresholds(pipeline, name, stages);
    checkBeginning(name, stage, stages);
    checkConditions(name, stage);
  }
  checkCycles(pipeline, stages);
  for (const [name, stage] of Object.entries(stages)) {
    checkRivals(name, stage, stages);
    checkBackPressure(name, stage, stages);
    checkShared(name, stage);
    checkTimeout(name, stage);
  }
}

/** The most seconds that a handler may take in an Edge Function, whose wall clock ends soon after. */
const longestInFunction = 190;

function checkTimeout(name: string, stage: StageDefinition): void {
  if (!('function' in stage) || stage.host === 'worker' || stage.timeoutSeconds <= longestInFunction) return;
  throw new Error(
    `stages.${name}.timeoutSeconds is ${stage.timeoutSeconds}, but must be at most ${longestInFunction} in an Edge Function: ` +
      "lower it, or let the stage run on a worker of your own by host: 'worker'.",
  );
}

function checkNeeds(pipeline: string, name: string, stages: Stages): void {
  const needs = stages[name]?.needs ?? [];
  for (const [position, need] of needs.entries()) {
    if (!stages[need]) {
      const others = Object.keys(stages).filter((other) => other !== name);
      const remedy = others.length > 0 ? `name one of ${others.join(', ')}` : 'there is no other stage';
      throw new Error(`stages.${name}.needs names ${need}, which pipeline ${pipeline} does not have: ${remedy}.`);
    }
    if (needs.indexOf(need) < position) throw new Error(`stages.${name}.needs names ${need} twice: name it once.`);
  }
}

function checkThresholds(pipeline: string, name: string, stages: Stages): void {
  for (const [position, { map }] of (stages[name]?.after ?? []).entries()) {
    const kind = stages[map]?.kind;
    if (kind === 'map') continue;
    const found = kind ? `is of kind ${kind}` : `pipeline ${pipeline} does not have`;
    throw new Error(`stages.${name}.after.${position}.map names ${map}, which ${found}: name a stage of kind map.`);
  }
}

/** Checks when a stage begins: no condition may be without effect, and some stage must begin a run by itself. */
function checkBeginning(name: string, stage: StageDefinition, stages: Stages): void {
  const { when, otherwise, given, onDemand, needs } = stage;
  if (otherwise && when === undefined) {
    throw new Error(`stages.${name}.otherwise is ${otherwise}, but there is no when: add a condition, or remove it.`);
  }
  if (!onDemand) return;
  const beside = when !== undefined ? 'when' : given !== undefined ? 'given' : undefined;
  if (beside) {
    throw new Error(
      `stages.${name}.${beside} stands beside onDemand, but a start by name overrules a stage's own conditions: remove one.`,
    );
  }
  const begins = Object.values(stages).some((other) => stagesBefore(other).length === 0 && !other.onDemand);
  if (!begins && needs.length === 0) {
    throw new Error(
      `stages.${name}.onDemand leaves no stage with which a run begins by itself: let one do without it.`,
    );
  }
}

/** Checks the conditions of a stage, each on the roots that it may ask for. */
function checkConditions(name: string, stage: StageDefinition): void {
  checkCondition(`stages.${name}.when`, stage.when, ['entity', 'needs'], stage.needs);
  checkCondition(`stages.${name}.given`, stage.given, ['entity'], stage.needs);
  for (const [ending, when] of Object.entries(('ends' in stage && stage.ends) || {})) {
    checkCondition(`stages.${name}.ends.${ending}`, when, ['entity', 'result'], stage.needs);
  }
}

function checkCondition(field: string, condition: string | undefined, roots: string[], needs: string[]): void {
  const { paths, inBrackets } = pathsOf(condition ?? '');
  if (inBrackets) {
    throw new Error(
      `${field} has the name ${inBrackets} in brackets, where only places of a list are: put a dot before it.`,
    );
  }
  // A condition with a misspelt name would silently never be true. Only the database knows the columns.
  for (const [root, asked] of paths) {
    if (root !== undefined && !roots.includes(root)) {
      throw new Error(`${field} asks for $.${root}: begin each path with $.${roots.join(' or $.')}.`);
    }
    if (root === 'needs' && asked !== undefined && !needs.includes(asked)) {
      throw new Error(`${field} asks for the result of ${asked}, which is none of its needs: add it there.`);
    }
  }
}

function checkCycles(pipeline: string, stages: Stages): void {
  const settled = new Set<string>();
  const visit = (stage: string, trail: string[]): void => {
    if (settled.has(stage)) return;
    if (trail.includes(stage)) {
      const cycle = [...trail.slice(trail.indexOf(stage)), stage].join(' → ');
      throw new Error(`Pipeline ${pipeline} has a cycle: ${cycle}. Remove one of these needs or thresholds.`);
    }
    for (const earlier of stagesBefore(stages[stage])) visit(earlier, [...trail, stage]);
    settled.add(stage);
  };
  for (const stage of Object.keys(stages)) visit(stage, []);
}

/** Refuses two stages side by side that start the same child pipeline. Where both have a condition, a run may take only one. */
function checkRivals(name: string, stage: StageDefinition, stages: Stages): void {
  if (stage.kind !== 'pipeline') return;
  const child = stage.child.pipeline;
  const later = stagesAfter(stages);
  for (const [other, rival] of Object.entries(stages)) {
    if (other === name || rival.kind !== 'pipeline' || rival.child.pipeline !== child) continue;
    if ((stage.when && rival.when) || later[name]?.includes(other) || later[other]?.includes(name)) continue;
    throw new Error(
      `stages.${name}.child.pipeline is ${child}, which ${other} beside it starts too, but a row has one live run a ` +
        `pipeline: let one of them need the other, or give them child pipelines of their own.`,
    );
  }
}

/** Checks what a stage says of shared limits. The database checks that the limits exist and have a budget. */
function checkShared(name: string, stage: StageDefinition): void {
  const shared = ('limits' in stage && stage.limits?.shared) || [];
  if ('whenSpent' in stage && stage.whenSpent === 'bypass' && shared.length === 0) {
    throw new Error(
      `stages.${name}.whenSpent is bypass, but limits.shared names no limit with a budget: name one, or leave it out.`,
    );
  }
  const { expectedUsd } = (('limits' in stage ? stage.limits : undefined) as { expectedUsd?: number }) ?? {};
  if (expectedUsd !== undefined && shared.length === 0) {
    throw new Error(
      `stages.${name}.limits.expectedUsd is ${expectedUsd}, but limits.shared names no limit with a budget: name one, or leave it out.`,
    );
  }
  const twice = shared.find((limit, position) => shared.indexOf(limit) < position);
  if (twice) throw new Error(`stages.${name}.limits.shared names ${twice} twice: name it once.`);
}

/** Checks that back-pressure comes from later stages: otherwise the stage might wait for ever. */
function checkBackPressure(name: string, stage: StageDefinition, stages: Stages): void {
  const given = 'limits' in stage ? stage.limits?.backPressure : undefined;
  const targets = Array.isArray(given) ? given.map((one) => one.stage) : given ? [given.stage] : [];
  for (const [position, target] of targets.entries()) {
    const field = `stages.${name}.limits.backPressure.${Array.isArray(given) ? `${position}.` : ''}stage`;
    if (targets.indexOf(target) < position) {
      throw new Error(
        `${field} is "${target}", but must be a stage that is named once. Leave the one with the larger backlog out.`,
      );
    }
    const later = stagesAfter(stages)[name] ?? [];
    if (later.includes(target)) continue;
    const remedy =
      later.length > 0
        ? `After ${name} come: ${later.join(', ')}.`
        : 'No stage comes after this one: leave backPressure out.';
    throw new Error(`${field} is "${target}", but must be a stage that comes after this one. ${remedy}`);
  }
}
