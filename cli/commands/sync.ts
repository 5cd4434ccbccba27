// millrace sync: the migrations that definitions lack.
import pc from 'picocolors';
import { defineCommand, writingOptions } from '../define-command.ts';
import { findProject } from '../project/find-project.ts';
import { syncPipelines } from '../sync/sync-pipelines.ts';

export const sync = defineCommand({
  usage: `npx millrace sync [--check]
  Writes a migration for each definition of supabase/functions/_pipelines that has changed.
  --check    writes none, and fails where one is missing`,
  options: { ...writingOptions, check: { type: 'boolean', default: false } },
  run: async ({ values }) => {
    const { root } = findProject(values.workdir);
    const told: string[] = [];
    await syncPipelines(`${root}/supabase`, values.check || values['dry-run'], {
      command: 'millrace sync',
      log: (line: string) => told.push(line),
      warn: (line: string) => told.push(pc.yellow(line)),
    });
    return values.json ? JSON.stringify({ told }) : told.join('\n');
  },
});
