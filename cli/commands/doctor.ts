// millrace doctor: what is amiss in the database, each with its remedy, and whether database, folder and command are of one release.
import fs from 'node:fs';
import path from 'node:path';
import { defineCommand, remoteOption } from '../define-command.ts';
import { reachProject } from '../operate/reach-project.ts';
import { CommandError } from '../project/command-error.ts';
import { findProject } from '../project/find-project.ts';
import { readHealth } from '../project/read-health.ts';
import { databaseFault, releaseFault } from '../project/release-fit.ts';
import { readManifest, runtimeFolder } from '../project/shipped.ts';

export const doctor = defineCommand({
  usage: `npx millrace doctor [--remote[=REF]]
  Tells what is amiss in the database, each with what helps, and whether database, folder and this command are of one release.
  Asks the local stack, or the project at SUPABASE_URL with SUPABASE_SECRET_KEY.
  --remote[=REF]  the project that the folder is linked to, or the one of this reference, branch or URL`,
  options: remoteOption,
  run: async ({ values }) => {
    const { url, headers } = await reachProject({ ...values, revealsKey: true });
    const health = await readHealth(url, headers);
    const folder = path.join(findProject(values.workdir).root, runtimeFolder);
    const isThere = fs.existsSync(path.join(folder, 'manifest.json'));
    const manifest = isThere ? readManifest(folder) : readManifest();
    const faults = [releaseFault(manifest, 'doctor'), databaseFault(health, manifest)];
    const all = [...faults.filter((fault) => fault !== null), ...health.amiss];
    if (all.length > 0) throw new CommandError(all.join('\n'));
    return values.json ? JSON.stringify({ ok: true }) : 'All is well.';
  },
});
