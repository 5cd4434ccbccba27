// The code of stages as `pipelines:sync` and the tests see it: what each function's handler.ts exports.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Stage } from '../supabase/functions/_shared/stage.ts';
import type { DefinitionJson } from './pipeline-migration.ts';

const projectFunctions = path.join(import.meta.dirname, '..', 'supabase', 'functions');

/** A stage's code, and the handler.ts it stands in. */
export interface StageCode {
  file: string;
  stage: Stage;
}

/** Every stage that the handlers in this folder export. Throws an error that names the file when one cannot be loaded. */
export async function readStages(functionsFolder = projectFunctions): Promise<StageCode[]> {
  const files = fs
    .readdirSync(functionsFolder)
    .map((name) => path.join(functionsFolder, name, 'handler.ts'))
    .filter((file) => fs.existsSync(file));
  return (await Promise.all(files.sort().map(stagesOf))).flat();
}

async function stagesOf(file: string): Promise<StageCode[]> {
  let module: Record<string, unknown>;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (error) {
    throw new Error(
      `${path.join('supabase', path.relative(path.dirname(path.dirname(path.dirname(file))), file))}: ${(error as Error).message}`,
    );
  }
  return Object.values(module)
    .filter(isStage)
    .map((stage) => ({ file, stage }));
}

function isStage(value: unknown): value is Stage {
  const stage = value as Partial<Stage> | null;
  return typeof stage?.handler === 'function' && typeof stage.definition === 'object' && Array.isArray(stage.services);
}

/**
 * What keeps jobs at services from being finished, one sentence each with the remedy. That a waiting stage has a `finish`
 * is what defineStage() itself asks for, so a handler that cannot be loaded is such a fault.
 */
export async function stageFaults(pipelines: DefinitionJson[], supabaseFolder: string): Promise<string[]> {
  let stages: StageCode[];
  try {
    stages = await readStages(path.join(supabaseFolder, 'functions'));
  } catch (error) {
    return [(error as Error).message];
  }
  return pipelines.flatMap(({ pipeline, stages: definitions }) =>
    definitions.flatMap(({ name, kind, function: functionName, completion }) => {
      const code = stages.find(({ stage }) => stage.pipeline.name === pipeline && stage.name === name)?.stage;
      if (!code) return [];
      const subject = `Stage ${name} of pipeline ${pipeline}`;
      if (kind === 'external' && !code.finish) {
        return [
          `${subject} waits for jobs, but its code has no finish function: give defineStage() one in supabase/functions/${functionName}/handler.ts.`,
        ];
      }
      const polls = completion?.poll_seconds;
      if (polls == null || code.services.length === 0 || code.services.some(({ poll }) => poll)) return [];
      const names = code.services.map((service) => service.name).join(', ');
      return [
        `${subject} is to be polled every ${polls} s, but none of its services (${names}) can be asked after a job: ` +
          'give one of them a poll function, or say pollSeconds: null.',
      ];
    }),
  );
}
