import { createHash } from 'node:crypto';
import type { PipelineDefinition } from '../define/define-pipeline.ts';
import {
  type PipelineInput,
  type PipelineOptions,
  pipelineSchema,
  type StageDefinition,
} from '../define/definition-schema.ts';
import { slotsOf } from '../define/stage-defaults.ts';
import { adoptedStateOf } from './adopted-states.ts';
import { alertRows } from './alert-rows.ts';
import { canonicalJson } from './canonical-json.ts';
import { checkAlerts, checkGraph } from './definition-checks.ts';
import { definitionFaults } from './definition-faults.ts';
import { type InputColumns, type Requirements, requirementsOf } from './requirements.ts';
import { snakeKeys } from './snake-keys.ts';
import { orderStages } from './stage-order.ts';
import { graphOf, type StageRow, stageRows } from './stage-rows.ts';
import { checkStatus } from './status-checks.ts';
import { statusMoves } from './status-moves.ts';
import { shownStages } from './status-path.ts';
import { type StatusDefinition, statusValues, valuesByPosition } from './status-values.ts';

/** Which compiler a definition is from. It rises whenever what the compiler checks or writes changes, here and in the engine. */
export const compiler = 1;

/** A definition as `millrace.define()` takes it: what it says of the pipeline, and the rows that the engine writes. */
export interface CompiledPipeline {
  compiler: number;
  /** The SHA-256 of all the rest, as Postgres writes it. */
  digest: string;
  pipeline: string;
  entity: Entity;
  stages: StageRow[];
  paths?: Requirements['paths'];
  [more: string]: unknown;
}

interface Entity {
  table: string;
  key: string;
  projection: string;
  startable_by?: string[];
  status?: { column: string };
}

/**
 * Checks a definition and compiles it, with the columns that the inputs of its stages require. Throws an error that names the field, what is wrong with it, what was found and the remedy;
 * what only the database knows, such as which columns there are, it checks when the definition comes there.
 */
export function compilePipeline(
  pipeline: Pick<PipelineDefinition, 'input'>,
  inputs: InputColumns = {},
): CompiledPipeline {
  const options = checkedOptions(pipeline.input);
  const { name, stages, alerts, entity, ...others } = options;
  const order = orderStages(stages);
  const { status } = entity;
  const rows = stageRows(options, order);
  const compiled = {
    compiler,
    pipeline: name,
    entity: snakeKeys(entity) as Entity,
    ...(snakeKeys(others) as object),
    stages: rows,
    graph: graphOf(stages),
    ...(status && statusRows(status, stages, order)),
    ...(alerts && { rules: alertRows(name, alerts) }),
    ...requirementsOf(options, inputs),
  };
  return withDigest(JSON.parse(JSON.stringify(compiled)));
}

function statusRows(status: StatusDefinition, stages: PipelineOptions['stages'], order: string[]): object {
  const shown = shownStages(status, stages, order);
  const adopted = adoptedStateOf(status, shown);
  const values = statusValues(status, stages, order).map((row) => ({ ...row, ...adopted(row.value) }));
  return { values, moves: statusMoves(status, shown), positions: valuesByPosition(status, stages) };
}

/** Adds the digest of its content to a compiled definition: the database refuses rows that were changed afterwards. */
export function withDigest({ digest: _, ...content }: Record<string, unknown>): CompiledPipeline {
  const digest = createHash('sha256').update(canonicalJson(content)).digest('hex');
  const { compiler: by, ...rest } = content;
  return { compiler: by, digest, ...rest } as CompiledPipeline;
}

/** Checks a definition and fills in its defaults. Throws an error that names each faulty field and its remedy. */
export function checkedOptions(input: PipelineInput): PipelineOptions {
  const parsed = pipelineSchema.safeParse(input);
  if (!parsed.success) {
    const faults = definitionFaults(pipelineSchema, parsed.error, input).join(' ');
    throw new Error(`Pipeline ${String(input.name)} is not defined correctly. ${faults}`);
  }
  checkAlerts(parsed.data);
  checkGraph(parsed.data.name, parsed.data.stages);
  checkStatus(parsed.data);
  return { ...parsed.data, stages: withPlaces(parsed.data.stages) };
}

/** Returns the stages with their slots written out. Throws an error that names a stage that gives their number twice. */
function withPlaces(stages: Record<string, StageDefinition>): Record<string, StageDefinition> {
  return Object.fromEntries(
    Object.entries(stages).map(([name, stage]) => {
      if (!('function' in stage)) return [name, stage];
      const { concurrency, batchSize, maxWorkers } = stage;
      if (concurrency !== undefined && (batchSize !== undefined || maxWorkers !== undefined)) {
        throw new Error(
          `stages.${name}.concurrency is ${concurrency}, but batchSize or maxWorkers is given as well: keep concurrency, ` +
            'for which the engine chooses both, or give these two alone.',
        );
      }
      return [name, { ...stage, ...slotsOf(stage) }];
    }),
  );
}
