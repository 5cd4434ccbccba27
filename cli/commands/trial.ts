// millrace trial: what hosted Supabase does, measured on an empty project and taken away again.
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import { defineCommand, remoteOption } from '../define-command.ts';
import { connectApi } from '../operate/ask-api.ts';
import { loadDev } from '../project/load-dev.ts';
import { engineUninstall, type Manifest, readManifest } from '../project/shipped.ts';
import { connectTarget } from './connect.ts';
import { initChanges } from './init.ts';

/** The functions that a trial borrows, since they read files of the package millrace, of which @millrace/dev has none. */
export interface TrialDeps {
  connectTarget: typeof connectTarget;
  engineUninstall: typeof engineUninstall;
  initChanges: typeof initChanges;
  manifest: Manifest;
  connectApi: typeof connectApi;
}

/** The options of a trial. */
export interface TrialRequest {
  reference: string;
  /** The folder whose supabase CLI runs, and which gets the report. */
  from: string;
  branch: boolean;
  quick: boolean;
  yes: boolean;
  clean: boolean;
  json: boolean;
}

/** The entry `trial` of @millrace/dev. */
export interface Trial {
  /** Tries an empty project, and writes the report. Resolves to a sentence for the person. Throws a CommandError. */
  tryHosted(deps: TrialDeps, request: TrialRequest): Promise<string>;
}

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
    const deps = { connectTarget, engineUninstall, initChanges, manifest: readManifest(), connectApi };
    return tryHosted(deps, { ...values, reference, from });
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
