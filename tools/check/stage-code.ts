// Checks that the code of stages, which each function's handler.ts exports, says how to finish jobs at services.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';

const projectFunctions = path.join(import.meta.dirname, '..', '..', 'supabase', 'functions');

/** Every stage that the handlers in this folder export. Throws an error that names the file when one cannot be loaded. */
export async function readStages(functionsFolder = projectFunctions): Promise<Stage[]> {
  const names = fs
    .readdirSync(functionsFolder)
    .filter((name) => fs.existsSync(path.join(functionsFolder, name, 'handler.ts')));
  return (await Promise.all(names.sort().map((name) => stagesOf(functionsFolder, name)))).flat();
}

async function stagesOf(functionsFolder: string, name: string): Promise<Stage[]> {
  try {
    const module = await import(pathToFileURL(path.join(functionsFolder, name, 'handler.ts')).href);
    return Object.values(module as Record<string, unknown>).filter(isStage);
  } catch (error) {
    throw new Error(`supabase/functions/${name}/handler.ts: ${(error as Error).message}`);
  }
}

function isStage(value: unknown): value is Stage {
  const stage = value as Partial<Stage> | null;
  return typeof stage?.handler === 'function' && typeof stage.definition === 'object' && Array.isArray(stage.services);
}

/**
 * Loads every handler and checks that its stage's jobs can be finished. Resolves to what is wrong, a line each, empty when all
 * is well. defineStage() itself refuses a waiting stage without `finish`, so that its handler does not load.
 */
export async function checkStageCode(functionsFolder = projectFunctions): Promise<string> {
  let stages: Stage[];
  try {
    stages = await readStages(functionsFolder);
  } catch (error) {
    return (error as Error).message;
  }
  return stages.flatMap(pollFault).join('\n');
}

function pollFault({ pipeline, name, definition, services }: Stage): string[] {
  const polls = 'completion' in definition ? definition.completion?.pollSeconds : undefined;
  if (polls == null || services.length === 0 || services.some(({ poll }) => poll)) return [];
  const names = services.map((service) => service.name).join(', ');
  return [
    `Stage ${name} of pipeline ${pipeline.name} is to be polled every ${polls} s, but none of its services (${names}) can be ` +
      'asked after a job: give one of them a poll function, or say pollSeconds: null.',
  ];
}
