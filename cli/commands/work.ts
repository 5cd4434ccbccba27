// millrace work: works at the stages of the project that run on a worker, in this process, until SIGTERM or Ctrl-C.
import fs from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { whenNpmEnds } from '../../local/platform/parent-ends.ts';
import type { serveWorker } from '../../supabase/functions/_millrace/serve-worker.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { CommandError } from '../command-error.ts';
import { defineCommand } from '../define-command.ts';
import { findTarget } from '../operate/find-target.ts';
import { findProject } from '../project/find-project.ts';
import { endBuilds, type LoadError, loadModules } from '../project/load-definitions.ts';
import { stagesIn } from '../project/load-handlers.ts';
import { readManifest, runtimeFolder } from '../project/shipped.ts';
import { readDefinitions } from '../sync/read-definitions.ts';

export const work = defineCommand({
  usage: `npx millrace work [--stages NAME,NAME]
  Works at the stages whose definition says host: 'worker', in this process, until SIGTERM or Ctrl-C. It then finishes what it has
  begun and puts back the rest; a second Ctrl-C puts all back.
  Works for SUPABASE_URL with SUPABASE_SECRET_KEY, or else for the local stack; handlers also get supabase/functions/.env.
  --stages  only these, such as \`ocr\` or \`books.ocr\``,
  options: { stages: { type: 'string' } },
  run: async ({ values }) => {
    const { root } = findProject(values.workdir);
    const functions = path.join(root, 'supabase', 'functions');
    const wanted = await wantedStages(functions, values.stages);
    await addEnvironment(functions, values.workdir);
    const [runtime, ...handlers] = await load(functions, wanted);
    const stages = handlers.flatMap((handler, at) => stageOf(handler, wanted[at] as Wanted));
    await endBuilds();
    const serve = runtime?.serveWorker as typeof serveWorker;
    // A worker that outlives its npx would go on unseen.
    const left = new AbortController();
    whenNpmEnds(() => left.abort());
    await serve(stages, { release: releaseOf(path.join(root, runtimeFolder)), signal: left.signal });
    return '';
  },
});

/** Returns the release of the project's runtime, which stands in for that of the project. */
function releaseOf(folder: string): string {
  return fs.existsSync(path.join(folder, 'manifest.json')) ? `millrace ${readManifest(folder).release}` : 'millrace';
}

/** A stage to work at: its names, and the function whose folder holds its handler. */
interface Wanted {
  pipeline: string;
  stage: string;
  functionName: string;
}

/** The stages that run on a worker, or those of them that are named. Throws a CommandError for a name that is none. */
async function wantedStages(functions: string, named: string | undefined): Promise<Wanted[]> {
  const defined = await readDefinitions(path.join(functions, '_pipelines'));
  const pipelines = new Set(defined.flatMap(({ exported }) => [...exported.values()]));
  const onWorkers = [...pipelines].flatMap(({ name: pipeline, stages }) =>
    Object.entries(stages).flatMap(([stage, given]) =>
      'function' in given && given.host === 'worker' ? [{ pipeline, stage, functionName: given.function }] : [],
    ),
  );
  const all = onWorkers.map(({ pipeline, stage }) => `${pipeline}.${stage}`).join(', ');
  if (onWorkers.length === 0) {
    throw new CommandError(
      "No stage runs on a worker: say host: 'worker' in a stage's definition, run `npx millrace sync`, and push its migration.",
    );
  }
  if (named === undefined) return onWorkers;
  return named.split(',').flatMap((word) => {
    const found = onWorkers.filter(({ pipeline, stage }) => word === stage || word === `${pipeline}.${stage}`);
    if (found.length > 0) return found;
    throw new CommandError(`--stages names ${word || 'nothing'}, and the stages on a worker are ${all}.`, 2);
  });
}

/** Adds the functions' settings to the environment, and where it names no project, the local stack. */
async function addEnvironment(functions: string, workdir: string): Promise<void> {
  const file = path.join(functions, '.env');
  const settings = fs.existsSync(file) ? parseEnv(fs.readFileSync(file, 'utf8')) : {};
  for (const [name, value] of Object.entries(settings)) process.env[name] ??= value;
  if (process.env.SUPABASE_URL) return;
  const { url, headers } = await findTarget({ workdir });
  Object.assign(process.env, { SUPABASE_URL: url, SUPABASE_SECRET_KEY: headers.apikey });
}

/** Loads the runtime of the project and these handlers as one, so that they share their classes. */
async function load(functions: string, wanted: Wanted[]): Promise<Record<string, unknown>[]> {
  const files = wanted.map(({ functionName }) => path.join(functions, functionName, 'handler.ts'));
  const missing = files.find((file) => !fs.existsSync(file));
  if (missing) {
    const file = path
      .relative(path.dirname(path.dirname(functions)), missing)
      .split(path.sep)
      .join('/');
    throw new CommandError(`${file} does not exist: write the handler of the stage there.`);
  }
  try {
    return await loadModules([path.join(functions, '_millrace', 'serve-worker.ts'), ...files], {
      packages: 'installed',
    });
  } catch (error) {
    const { message } = error as LoadError;
    const [, name] = /Could not resolve "(?:npm:)?((?:@[^"/]+\/)?[^"/@]+)/.exec(message) ?? [];
    const remedy = name ? `: install it where this runs, npm install ${name}.` : '';
    throw new CommandError(message + remedy);
  }
}

/** Returns the stage that a handler defines. */
function stageOf(handler: Record<string, unknown>, { pipeline, stage, functionName }: Wanted): Stage {
  const found = stagesIn(handler).find((one) => one.pipeline.name === pipeline && one.name === stage);
  if (found) return found;
  throw new CommandError(
    `supabase/functions/${functionName}/handler.ts exports no stage ${stage} of pipeline ${pipeline}: export what defineStage() returns.`,
  );
}
