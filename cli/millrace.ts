// The command of the package, npx millrace: finds the command asked for and tells how it went.
import { parseArgs } from 'node:util';
import { nearestName } from '../supabase/functions/_millrace/compile/nearest-name.ts';
import { CommandError } from './command-error.ts';
import { commonOptions, type Entry } from './define-command.ts';
import { operateEntries } from './operate/entries.ts';
import { hasRunForeign } from './project/run-foreign.ts';
import { readManifest } from './project/shipped.ts';
import { throughJq } from './through-jq.ts';

const commands: Record<string, Entry> = {
  init: {
    summary: 'the engine, the runtime, the function millrace and its section of the configuration',
    load: async () => (await import('./commands/init.ts')).init,
  },
  add: {
    summary: 'a pipeline, or stages at the end of one that is there: definition, functions, tests',
    load: async () => (await import('./commands/add.ts')).add,
  },
  remove: {
    summary: 'stages out of a pipeline: definition, functions, tests, sections of the configuration',
    load: async () => (await import('./commands/remove.ts')).remove,
  },
  rename: {
    summary: 'a stage under another name, with its function, test and section of the configuration',
    load: async () => (await import('./commands/rename.ts')).rename,
  },
  sync: {
    summary: 'the migrations that definitions lack',
    load: async () => (await import('./commands/sync.ts')).sync,
  },
  check: {
    summary: 'whether what is here could be deployed, for CI; writes nothing',
    load: async () => (await import('./commands/check.ts')).check,
  },
  dev: {
    summary: 'your migrations and functions on this machine, without Docker, until Ctrl-C',
    load: async () => (await import('./commands/dev.ts')).dev,
  },
  work: {
    summary: 'works at the stages that run on a worker of your own, until Ctrl-C',
    load: async () => (await import('./commands/work.ts')).work,
  },
  connect: {
    summary: 'tells the database where the functions are, and with what to wake them',
    load: async () => (await import('./commands/connect.ts')).connect,
  },
  doctor: {
    summary: 'problems in the database, with remedies',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  adopt: {
    summary: 'a migration by which rows that were there before get a value of the status column',
    load: async () => (await import('./commands/adopt.ts')).adopt,
  },
  docs: {
    summary: 'a page of the documentation, or the lines that hold a word; needs no network',
    load: async () => (await import('./commands/docs.ts')).docs,
  },
  trial: {
    summary: 'what hosted Supabase does, measured on an empty project and taken away again',
    load: async () => (await import('./commands/trial.ts')).trial,
  },
  upgrade: {
    summary: 'the runtime and the engine of this release in the place of an older one',
    load: async () => (await import('./commands/upgrade.ts')).upgrade,
  },
  completion: {
    summary: 'a script by which a shell completes commands and options',
    load: async () => (await import('./commands/completion.ts')).completionOf({ ...commands, ...operateEntries }),
  },
  uninstall: {
    summary: 'a migration that removes the engine; our files go',
    load: async () => (await import('./commands/uninstall.ts')).uninstall,
  },
};

const listed = (entries: Record<string, Entry>) =>
  Object.entries(entries)
    .map(([name, { summary }]) => `  ${name.padEnd(11)} ${summary}`)
    .join('\n');

const usage = `npx millrace COMMAND

${listed(commands)}

To operate a project: the local stack, SUPABASE_URL, or --remote[=REF|BRANCH|URL]
${listed(operateEntries)}

Everywhere: --workdir DIR (default: here), --json (one line for programs), --jq EXPR (the same through jq),
--help or -h (what the command takes).
What writes into the project takes --dry-run, which shows the change and writes nothing. --version tells the release.
Exit codes: 0 done, or nothing to do · 1 something is wrong, and nothing was written · 2 the command was misspelt ·
3 the project refused it · 4 the project cannot be reached.`;

const isHelp = (arg: string) => arg === '--help' || arg === '-h';

async function main(args: string[]): Promise<string> {
  const { positionals, values } = parseArgs({ args, options: commonOptions, allowPositionals: true, strict: false });
  if (positionals.length === 0 && args.includes('--version')) return readManifest().release;
  const asksHelp = positionals[0] === 'help' || args.some(isHelp);
  const [name = ''] = positionals[0] === 'help' ? positionals.slice(1) : positionals;
  const all = { ...commands, ...operateEntries };
  const entry = Object.hasOwn(all, name) ? all[name] : undefined;
  if (asksHelp && !name) return usage;
  if (!entry) {
    const near = nearestName(name, Object.keys(all));
    const meant = near ? ` Do you mean ${near}?` : '';
    throw new CommandError(name ? `There is no command ${name}.${meant} npx millrace --help lists all.` : usage, 2);
  }
  const command = await entry.load();
  if (asksHelp) return command.usage;
  const own = args.toSpliced(args.indexOf(name), 1);
  const { jq } = values;
  return typeof jq === 'string' ? throughJq(jq, () => command.run(['--json', ...own])) : command.run(own);
}

// A reader such as head closes the pipe early: the command then ends without an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

const args = process.argv.slice(2);
try {
  const told = await main(args);
  if (told) console.log(told);
} catch (error) {
  const { message } = error as Error;
  if (args.includes('--json')) console.log(JSON.stringify({ error: message }));
  console.error(message);
  process.exitCode = (error as Partial<CommandError>).exitCode ?? 1;
}
// A timer or a connection that the project's files have left open keeps nobody waiting.
if (hasRunForeign()) process.stdout.write('', () => process.exit());
