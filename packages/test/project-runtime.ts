// The runtime in a project's supabase/functions/_millrace, which its handlers import too. A copy of it in this package would know
// none of their errors and answers, which are told by their classes.
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

const runtimeFolder = path.join('supabase', 'functions', '_millrace');

/** The nearest folder above the working directory whose `supabase` has the runtime. Throws with the remedy where there is none. */
export function projectFolder(): string {
  for (let folder = process.cwd(); ; folder = path.dirname(folder)) {
    if (fs.existsSync(path.join(folder, runtimeFolder))) return folder;
    if (folder === path.dirname(folder)) break;
  }
  throw new Error(
    `No ${runtimeFolder} lies in ${process.cwd()} or above it: run the tests in the project's folder, after \`npx millrace init\`.`,
  );
}

/**
 * Imports a file of the project by the loader of the test, which is Vitest's own or Node's: the test's own imports of the same file
 * get the same module.
 */
export function importFile<Module>(file: string): Promise<Module> {
  return import(/* @vite-ignore */ pathToFileURL(file).href);
}

/** The modules of the runtime that tests use, by their files. */
export interface RuntimeModules {
  'worker/run-handler.ts': typeof import('../../supabase/functions/_millrace/worker/run-handler.ts');
  'jobs/finish-job.ts': typeof import('../../supabase/functions/_millrace/jobs/finish-job.ts');
  'jobs/finish-callback.ts': typeof import('../../supabase/functions/_millrace/jobs/finish-callback.ts');
  'jobs/poll-services.ts': typeof import('../../supabase/functions/_millrace/jobs/poll-services.ts');
  'jobs/resume-jobs.ts': typeof import('../../supabase/functions/_millrace/jobs/resume-jobs.ts');
  'worker/drain.ts': typeof import('../../supabase/functions/_millrace/worker/drain.ts');
  'worker/isolate.ts': typeof import('../../supabase/functions/_millrace/worker/isolate.ts');
  'worker/collect-children.ts': typeof import('../../supabase/functions/_millrace/worker/collect-children.ts');
  'engine/engine-client.ts': typeof import('../../supabase/functions/_millrace/engine/engine-client.ts');
  'stage/spawn-children.ts': typeof import('../../supabase/functions/_millrace/stage/spawn-children.ts');
  'stage/agent-checkpoints.ts': typeof import('../../supabase/functions/_millrace/stage/agent-checkpoints.ts');
  'stage/map-stage.ts': typeof import('../../supabase/functions/_millrace/stage/map-stage.ts');
}

/** Imports a module of the project's runtime. */
export function importRuntime<File extends keyof RuntimeModules>(
  file: File,
  root = projectFolder(),
): Promise<RuntimeModules[File]> {
  return importFile(path.join(root, runtimeFolder, file));
}

export type RuntimeLoader = <File extends keyof RuntimeModules>(file: File) => Promise<RuntimeModules[File]>;

/** Returns an importRuntime() that asks the test's loader for each module once. The fifty imports of five stages took it 20 ms. */
export function runtimeLoader(root: string): RuntimeLoader {
  const loaded = new Map<string, Promise<unknown>>();
  return ((file) => {
    const found = loaded.get(file) ?? importRuntime(file, root);
    loaded.set(file, found);
    return found;
  }) as RuntimeLoader;
}
