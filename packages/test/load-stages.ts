// The stages of a project's pipelines: their own handlers, or what a test puts in their place.
import fs from 'node:fs';
import path from 'node:path';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { ChildItem } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { HandlerContext, Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { importFile, importRuntime } from './project-runtime.ts';

const functionsOf = (root: string) => path.join(root, 'supabase', 'functions');

/** Resolves to the definitions of a project, by the names of the pipelines. */
export async function loadPipelines(root: string): Promise<Map<string, PipelineDefinition>> {
  const folder = path.join(functionsOf(root), '_pipelines');
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.ts'));
  const modules = await Promise.all(files.map((name) => importFile<Record<string, unknown>>(path.join(folder, name))));
  const pipelines = modules.flatMap((module) => Object.values(module)).filter(isPipeline);
  return new Map(pipelines.map((pipeline) => [pipeline.name, pipeline]));
}

const has = (value: unknown, ...fields: string[]): boolean =>
  typeof value === 'object' && value !== null && fields.every((field) => field in value);

const isPipeline = (value: unknown): value is PipelineDefinition => has(value, 'name', 'stages', 'input', 'stage');

export const isStage = (value: unknown): value is Stage => has(value, 'pipeline', 'definition', 'handler', 'output');

/** Resolves to the stage of a pipeline as its function exports it. Throws where the function has no handler of that stage. */
export async function loadStage(root: string, pipeline: PipelineDefinition, name: string): Promise<Stage> {
  const definition = pipeline.stage(name);
  if (!('function' in definition)) throw new Error(`Stage ${name} of ${pipeline.name} is of kind ${definition.kind}.`);
  const file = path.join(functionsOf(root), definition.function, 'handler.ts');
  const place = path.relative(root, file);
  if (!fs.existsSync(file)) {
    throw new Error(`Stage ${name} of ${pipeline.name} has no ${place}: give openPipeline() the work of the stage.`);
  }
  const module = await importFile<Record<string, unknown>>(file);
  const found = Object.values(module).find(
    (value) => isStage(value) && value.name === name && value.pipeline.name === pipeline.name,
  );
  if (found) return found as Stage;
  throw new Error(`${place} exports no stage ${name} of ${pipeline.name}: export what defineStage() returns.`);
}

const anything = { safeParse: (data: unknown) => ({ success: true, data }) } as unknown as Stage['input'];

/**
 * A stage whose work is a test's: a result, or a function in the place of the handler. Where the stage's own handler loads,
 * a result has to fit the output that it declares, so that a fake is no other than the stage can be.
 */
export async function fakeStage(
  root: string,
  pipeline: PipelineDefinition,
  name: string,
  work: unknown,
): Promise<Stage> {
  const definition = pipeline.stage(name);
  if (!('function' in definition)) {
    throw new Error(`Stage ${name} of ${pipeline.name} is of kind ${definition.kind}: the database does its work.`);
  }
  const own = await loadStage(root, pipeline, name).catch(() => undefined);
  const answer = typeof work === 'function' ? (work as Stage['handler']) : () => structuredClone(work);
  const fake: Stage = {
    pipeline,
    name,
    definition,
    input: anything,
    output: own?.output ?? anything,
    handler: answer,
    services: own?.services ?? [],
    finish: own?.finish,
    settings: [],
  };
  return definition.kind === 'map' ? fakeMap(fake, answer) : fake;
}

/** Resolves to a map stage whose items are the answer. */
async function fakeMap(stage: Stage, answer: Stage['handler']): Promise<Stage> {
  const { mapResult, defineMap } = await importRuntime('stage/map-stage.ts');
  return {
    ...defineMap({
      pipeline: stage.pipeline,
      stage: stage.name,
      input: anything,
      item: anything as unknown as Parameters<typeof defineMap>[0]['item'],
      items: async (input: unknown, context: HandlerContext) => (await answer(input, context)) as ChildItem[],
    }),
    output: mapResult,
  };
}
