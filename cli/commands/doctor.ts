// millrace doctor: what is amiss in the database, each with its remedy, and whether folder and command are of one release.
import fs from 'node:fs';
import path from 'node:path';
import { defineCommand, remoteOption } from '../define-command.ts';
import { reachProject } from '../operate/reach-project.ts';
import { CommandError } from '../project/command-error.ts';
import { findProject } from '../project/find-project.ts';
import { readHealth } from '../project/read-health.ts';
import { releaseFault } from '../project/release-fit.ts';
import { readManifest, runtimeFolder } from '../project/shipped.ts';

export const doctor = defineCommand({
  usage: `npx millrace doctor [--remote[=REF]]
  Tells what is amiss in the database, each with what helps, and whether this folder and this command are of one release.
  Asks the local stack, or the project at SUPABASE_URL with SUPABASE_SECRET_KEY.
  --remote[=REF]  the project that the folder is linked to, or the one of this reference`,
  options: remoteOption,
  run: async ({ values }) => {
    const { url, headers } = reachProject(values);
    const { amiss } = await readHealth(url, headers);
    const folder = path.join(findProject(values.workdir).root, runtimeFolder);
    const isThere = fs.existsSync(path.join(folder, 'manifest.json'));
    const fault = isThere ? releaseFault(readManifest(folder), 'doctor') : null;
    const all = fault ? [fault, ...amiss] : amiss;
    if (all.length > 0) throw new CommandError(all.join('\n'));
    return values.json ? JSON.stringify({ ok: true }) : 'All is well.';
  },
});
