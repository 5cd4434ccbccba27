import type { PipelineOptions, StageDefinition } from '../define/definition-schema.ts';
import { orderStages, stagesBefore } from './stage-order.ts';
import { liveValues, type StatusDefinition, valuesUsed } from './status-values.ts';

type Stages = Record<string, StageDefinition>;

/** Checks what a definition says of its status column. Throws an error that names the field and the remedy. */
export function checkStatus({ entity: { status }, stages }: PipelineOptions): void {
  if (!status) return;
  const order = orderStages(stages);
  checkChain(order, stages);
  checkLayers(order, status);
  checkListed(status);
  checkPlaces(status, stages);
  checkQuestions(stages);
  checkEnds(status, stages);
  checkMoves(status, stages);
}

function refuse(field: string, found: string, remedy: string): never {
  throw new Error(`entity.status${field}: ${found}. ${remedy}`);
}

/** Checks that the stages are a chain and each says what it shows. */
function checkChain(order: string[], stages: Stages): void {
  for (const [position, name] of order.entries()) {
    const stage = stages[name];
    if (!('shows' in (stage ?? {})) || !(stage as { shows?: unknown }).shows) {
      throw new Error(
        `stages.${name}.shows is missing, but the projection is status: say which values stand for it, as queued, started and ` +
          'completed, as asked for a manual stage, as queued and completed for a gate.',
      );
    }
    const before = order[position - 1];
    if (before === undefined || stagesBefore(stage).includes(before)) continue;
    throw new Error(
      `The stages are no chain: ${before} and ${name} may be under way at once, and one column shows one stage. Let ${name} need ` +
        `${before}, or use the projection columns.`,
    );
  }
}

/** Checks that layers are of stages that stand together, each in one layer. */
function checkLayers(order: string[], { layers }: StatusDefinition): void {
  for (const [name, { stages }] of Object.entries(layers)) {
    const field = `.layers.${name}`;
    const positions = stages.map((stage) => order.indexOf(stage));
    const other = Object.entries(layers).find(
      ([one, layer]) => one !== name && layer.stages.some((s) => stages.includes(s)),
    );
    if (positions.includes(-1)) {
      refuse(field, 'it names a stage that this pipeline does not have', `Stages are: ${order.join(', ')}.`);
    } else if (other) {
      refuse(field, `it shares a stage with layer ${other[0]}`, 'Put each stage into one layer.');
    } else if (Math.max(...positions) - Math.min(...positions) + 1 > stages.length) {
      refuse(field, `its stages ${stages.join(', ')} do not stand together`, `The chain is ${order.join(', ')}.`);
    }
  }
}

/** Checks that each value is listed once. */
function checkListed({ values }: StatusDefinition): void {
  const listed = Object.values(values).flatMap((category) => Object.keys(category));
  const twice = listed.find((value, position) => listed.indexOf(value) < position);
  if (twice !== undefined) {
    refuse('.values', `${twice} is listed twice`, 'List each value once, as the column shows it.');
  }
}

/** Checks that each value that is shown is listed, and stands for one place. */
function checkPlaces(status: StatusDefinition, stages: Stages): void {
  const listed = Object.values(status.values).flatMap((category) => Object.keys(category));
  for (const [value, positions] of valuesUsed(status, stages)) {
    const [position, other] = [...positions].sort();
    if (!listed.includes(value)) {
      refuse(
        '.values',
        `${value}, which ${position} shows, is not listed`,
        'List it with a name and a description under a category.',
      );
    } else if (other !== undefined && !status.shared.map(String).includes(value)) {
      refuse(
        '',
        `${value} stands for ${position} and for ${other}`,
        'Give each a value of its own, or list it in entity.status.shared where both are meant.',
      );
    }
  }
}

/** Checks that steps and answers move from and to values of their question. */
function checkQuestions(stages: Stages): void {
  for (const [name, { kind, ...stage }] of Object.entries(stages)) {
    if (kind !== 'manual' || !('shows' in stage) || !stage.shows || !('asked' in stage.shows)) continue;
    const { answers, interimMoves } = stage.shows;
    const named = [...Object.values(answers).flatMap(({ from }) => from), ...interimMoves.flat()].map(String);
    const wrong = named.find((value) => !liveValues(stage.shows).includes(value));
    if (wrong === undefined) continue;
    throw new Error(
      `stages.${name}.shows moves from or to ${wrong}, which is neither asked nor one of its interim values: list it in shows.interim, or ` +
        'correct it.',
    );
  }
}

function checkEnds(status: StatusDefinition, stages: Stages): void {
  for (const [name, stage] of Object.entries(stages)) {
    const ending = Object.keys(('ends' in stage && stage.ends) || {}).find((one) => !(one in status.ends));
    if (ending === undefined) continue;
    refuse(
      '.ends',
      `stage ${name} ends runs as ${ending}, for which there is no value`,
      'Say which value stands for it.',
    );
  }
}

/** Checks that what people may write beside the stages is a value that something shows. */
function checkMoves(status: StatusDefinition, stages: Stages): void {
  const used = valuesUsed(status, stages);
  const wrong = [...status.moves.flat(), ...status.entries].map(String).find((value) => !used.has(value));
  if (wrong === undefined) return;
  refuse(
    '.moves or entries',
    `${wrong} is a value that nothing shows`,
    'Name values that stages, layers, failures or endings show.',
  );
}
