// Loads handlers of functions: what keeps them from loading, and what the inputs of their stages require.
import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { InputColumns } from '../../supabase/functions/_millrace/compile/requirements.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type LoadError, loadModules } from './load-definitions.ts';

/** The result of loading handlers: their faults, and the columns that the inputs of their stages require. */
export interface Handlers {
  /** A sentence, with the remedy, for each handler that does not load, by its function. */
  faults: Map<string, string>;
  /** The columns that stages' inputs require, by the pipeline. */
  columns: Map<string, InputColumns>;
  /** The schemas of stages' results, by the pipeline. */
  outputs: Map<string, Record<string, z.ZodType>>;
}

type Loaded = Record<string, unknown>;

/**
 * Loads the handlers of these functions in `folder`, those that have a file of that name: all at once, as they share most of their
 * code, and each alone where that fails. Packages other than zod are stood in for, so that every machine reads the same.
 */
export async function readHandlers(folder: string, names: string[]): Promise<Handlers> {
  const found = names.filter((name) => fs.existsSync(handlerOf(folder, name)));
  const faults = new Map<string, string>();
  const load = (some: string[]) =>
    loadModules(
      some.map((name) => handlerOf(folder, name)),
      { packages: 'stand-ins' },
    );
  const each = async (name: string): Promise<Loaded[]> => {
    try {
      return await load([name]);
    } catch (error) {
      const fault = faultOf(name, error as LoadError);
      if (fault) faults.set(name, fault);
      return [];
    }
  };
  const alone = async () => {
    const modules: Loaded[] = [];
    for (const name of found) modules.push(...(await each(name)));
    return modules;
  };
  const modules = found.length > 1 ? await load(found).catch(alone) : await alone();
  return { faults, columns: columnsOf(modules), outputs: outputsOf(modules) };
}

const handlerOf = (folder: string, name: string) => path.join(folder, name, 'handler.ts');

function faultOf(name: string, { message, place = '', mayBeStandIn }: LoadError): string | undefined {
  // A fault of a definition is reported once, not for each of its stages.
  if (place.startsWith('supabase/functions/_pipelines/') || mayBeStandIn) return undefined;
  const remedy = / has no stage /.test(message)
    ? ` Bring the stage back, or delete supabase/functions/${name} with its test and its section of the configuration, as \`npx millrace remove\` does.`
    : '';
  const what = place ? '' : `supabase/functions/${name}/handler.ts cannot be loaded: `;
  return `${what}${message}${remedy}`;
}

function columnsOf(modules: Loaded[]): Map<string, InputColumns> {
  const columns = new Map<string, InputColumns>();
  for (const stage of modules.flatMap(stagesIn)) {
    const { pipeline, name, input } = stage;
    columns.set(pipeline.name, { ...columns.get(pipeline.name), [name]: requiredIn(shapeOf(input).entity) });
  }
  return columns;
}

function outputsOf(modules: Loaded[]): Map<string, Record<string, z.ZodType>> {
  const outputs = new Map<string, Record<string, z.ZodType>>();
  for (const { pipeline, name, output } of modules.flatMap(stagesIn))
    outputs.set(pipeline.name, { ...outputs.get(pipeline.name), [name]: output });
  return outputs;
}

const stageSchema = z.object({
  pipeline: z.object({ name: z.string() }),
  name: z.string(),
  definition: z.object({}),
  handler: z.function(),
});

/** Returns the stages that a handler exports. */
export const stagesIn = (module: Loaded): Stage[] => Object.values(module).filter(isStage);

const isStage = (value: unknown): value is Stage => stageSchema.safeParse(value).success;

/** Returns the properties that an object's schema refuses to be without, sorted. */
function requiredIn(schema: z.ZodType | undefined): string[] {
  const isRequired = ([, inner]: [string, z.ZodType]) => {
    try {
      return !inner.safeParse(undefined).success;
    } catch {
      // An asynchronous check cannot be run here: the property counts as optional.
      return false;
    }
  };
  return Object.entries(shapeOf(schema))
    .filter(isRequired)
    .map(([name]) => name)
    .sort();
}

/** Returns the properties of an object's schema; none of any other schema. */
function shapeOf(schema: z.ZodType | undefined): Record<string, z.ZodType> {
  return (schema as { shape?: Record<string, z.ZodType> } | undefined)?.shape ?? {};
}
