// millrace trial: what hosted Supabase does, measured on an empty project and taken away again.
import path from 'node:path';
import { defineCommand, remoteOption } from '../define-command.ts';
import { openDoor } from '../operate/ask-door.ts';
import { CommandError } from '../project/command-error.ts';
import { loadDev } from '../project/load-dev.ts';
import { engineUninstall, readManifest } from '../project/shipped.ts';
import { connectWhereReached } from './connect.ts';
import { initChanges } from './init.ts';

/** What @millrace/dev has of a trial. */
type Trial = typeof import('../trial/try-hosted.ts');

export const trial = defineCommand({
  usage: `npx millrace trial --remote=REF [--branch] [--quick] [--yes]
  Deploys a small pipeline of its own to an empty project of yours, measures it, takes everything away again, also after Ctrl-C,
  and writes trial-report.md: what hosted does beside what the local stack says. At most 15 minutes. Needs \`npx supabase login\`.
  --branch   a preview branch too, which needs a paid plan
  --quick    12 rows in place of 510, and 5 idle seconds in place of 60: a first look in a few minutes
  --yes      without asking
  --clean    takes away what a trial has left that was killed`,
  options: {
    ...remoteOption,
    branch: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    yes: { type: 'boolean', default: false },
    clean: { type: 'boolean', default: false },
  },
  run: async ({ values }) => {
    const reference = referenceIn(values.remote);
    const from = path.resolve(values.workdir);
    const { tryHosted } = await loadDev<Trial>(from, '@millrace/dev/trial', 'A trial');
    const lent = { connectWhereReached, engineUninstall, initChanges, manifest: readManifest(), openDoor };
    return tryHosted(lent, { ...values, reference, from });
  },
});

/** Throws a CommandError unless a project is named by its reference: nothing else says which one it is to be. */
function referenceIn(remote: string | undefined): string {
  if (remote && /^[a-z]{20}$/.test(remote)) return remote;
  const said = remote ? `--remote is ${JSON.stringify(remote)}` : '--remote names no project';
  throw new CommandError(
    `${said}, but must be the reference of an empty project, 20 lower-case letters: say --remote=REF.`,
    2,
  );
}
