// The command of the package: npx millrace init | add | sync | connect | upgrade | uninstall.
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { addChanges } from './commands/add.ts';
import { connect, readHealth } from './commands/connect.ts';
import { initChanges } from './commands/init.ts';
import { uninstallChanges } from './commands/uninstall.ts';
import { upgradeChanges } from './commands/upgrade.ts';
import { applyChanges, type Change, patchOf, realChanges } from './project/change-set.ts';
import { CommandError } from './project/command-error.ts';
import { findProject, type Project } from './project/find-project.ts';
import { syncPipelines } from './sync/sync-pipelines.ts';

const usage = `npx millrace COMMAND
  init                        the engine's migration, the runtime, the function millrace and its section of the configuration
  add PIPELINE STAGE …        a pipeline, or stages at the end of one that is there: definition, functions, tests
      --table T --key K       the table whose rows go through it (default: public.PIPELINE) and its key (default: id)
      --external | --model    the stages' work is done by a service that calls back, or by a model
  sync [--check]              the migrations that definitions lack; with --check none, and exit code 1 where one is missing
  connect                     tells the database where the functions are: SUPABASE_URL, SUPABASE_SECRET_KEY
      --remote REF            the project's reference, in the place of SUPABASE_URL
  upgrade [--force]           the runtime of this release; --force drops what you edited in it
  uninstall                   a migration that removes the engine; our files go

Everywhere: --workdir DIR (default: here), --dry-run (shows what would change), --json (one line for programs), --help.
Exit codes: 0 done, or nothing to do · 1 something is wrong, and nothing was written · 2 the command was misspelt.`;

const options = {
  workdir: { type: 'string', default: '.' },
  'dry-run': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  force: { type: 'boolean', default: false },
  external: { type: 'boolean', default: false },
  model: { type: 'boolean', default: false },
  table: { type: 'string' },
  key: { type: 'string', default: 'id' },
  remote: { type: 'string' },
} as const;

type Given = ReturnType<typeof read>;

function read() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new CommandError(`${(error as Error).message.split(/\.\s/)[0]}.\n\n${usage}`, 2);
  }
}

/** What each command does. Resolves to what the person is told at the end. */
const commands: Record<string, (given: Given) => Promise<string>> = {
  init: (given) =>
    write(given, initChanges, 'Next: npx millrace add PIPELINE STAGE --table YOUR_TABLE, then npx millrace sync.'),
  add: (given) =>
    write(given, (project) => added(given, project), 'Next: write what the handlers do, then npx millrace sync.'),
  sync,
  connect: connectProject,
  upgrade: (given) =>
    write(
      given,
      async (project) => upgradeChanges(project, given.values.force),
      'Next: npx supabase functions deploy.',
    ),
  uninstall: (given) =>
    write(given, uninstallChanges, 'Next: npx supabase db push, then delete the functions that are left over.'),
};

async function write({ values }: Given, plan: (project: Project) => Promise<Change[]>, next: string): Promise<string> {
  const project = findProject(values.workdir);
  const changes = realChanges(project.root, await plan(project));
  if (values['dry-run']) return patchOf(project.root, changes) || 'Nothing would change.';
  applyChanges(project.root, changes);
  if (values.json) return JSON.stringify({ files: changes.map(({ file }) => file) });
  if (changes.length === 0) return 'Nothing to do: all of it is there.';
  return [...summary(changes), next].join('\n');
}

/** What was written, the runtime's many files in one line. */
function summary(changes: Change[]): string[] {
  const ofRuntime = changes.filter(({ file }) => file.includes('/_millrace/'));
  const others = changes.filter((change) => !ofRuntime.includes(change));
  const line = ({ file, text }: Change) => `  ${text === null ? pc.red('gone') : pc.green('wrote')} ${file}`;
  return [
    ...others.map(line),
    ...(ofRuntime.length > 0
      ? [`  ${pc.green('wrote')} supabase/functions/_millrace (${ofRuntime.length} files)`]
      : []),
  ];
}

async function added({ positionals, values }: Given, project: Project): Promise<Change[]> {
  const [, pipeline, ...stages] = positionals;
  if (!pipeline || stages.length === 0) throw new CommandError(`Name a pipeline and its stages.\n\n${usage}`, 2);
  if (values.external && values.model) throw new CommandError('Say --external or --model, not both.', 2);
  const work = values.external ? 'external' : values.model ? 'model' : 'own';
  return addChanges(project, { pipeline, stages, work, table: values.table ?? `public.${pipeline}`, key: values.key });
}

async function sync({ values }: Given): Promise<string> {
  const { root } = findProject(values.workdir);
  const told: string[] = [];
  await syncPipelines(`${root}/supabase`, values.check || values['dry-run'], {
    command: 'millrace sync',
    log: (line: string) => told.push(line),
    warn: (line: string) => told.push(pc.yellow(line)),
  });
  return values.json ? JSON.stringify({ told }) : told.join('\n');
}

async function connectProject({ values }: Given): Promise<string> {
  const url = (values.remote ? `https://${values.remote}.supabase.co` : process.env.SUPABASE_URL)?.replace(/\/+$/, '');
  const secretKey = process.env.SUPABASE_SECRET_KEY;
  if (!url) throw new CommandError('Name the project with --remote REF, or set SUPABASE_URL.', 2);
  if (!secretKey) {
    throw new CommandError(
      'SUPABASE_SECRET_KEY is not set: set it to a secret key of the project (npx supabase projects api-keys --reveal).',
      2,
    );
  }
  const { project_url, secret } = await connect({ url, secretKey });
  const health = await readHealth({ url, secretKey });
  if (values.json) return JSON.stringify({ project_url, secret, ...health });
  const told = `The database wakes functions at ${project_url}, with ${secret}.`;
  return [
    told,
    ...(health.ok
      ? ['doctor() finds all well.']
      : ['doctor() still finds:', ...health.amiss.map((line) => `  ${line}`)]),
  ].join('\n');
}

try {
  const given = read();
  const [name = ''] = given.positionals;
  if (given.values.help || name === 'help') {
    console.log(usage);
  } else {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (!command) throw new CommandError(name ? `There is no command ${name}.\n\n${usage}` : usage, 2);
    const told = await command(given);
    if (told) console.log(told);
  }
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = error instanceof CommandError ? error.exitCode : 1;
}
