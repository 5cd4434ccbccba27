// millrace check: whether what is here could be deployed, for CI. It writes nothing.
import { configFaults } from '../check/config-faults.ts';
import { functionFaults } from '../check/function-faults.ts';
import { migrationFaults } from '../check/migration-faults.ts';
import { releaseFaults } from '../check/release-faults.ts';
import { typesFaults } from '../check/types-faults.ts';
import { CommandError } from '../command-error.ts';
import { defineCommand } from '../define-command.ts';
import { withFunctionSections } from '../project/config-sections.ts';
import { findProject, type Project, readConfigText } from '../project/find-project.ts';
import { warnTsconfig } from '../project/warn-tsconfig.ts';
import { sectionFaults } from '../sync/orphan-sections.ts';
import { missingMigrations } from './sync.ts';

export const check = defineCommand({
  usage: `npx millrace check
  Says whether what is here could be deployed, and writes nothing. Definitions have their migrations, and files of sync --types
  their types; handlers load; functions, their sections, deno.json and pins are as the deployment takes them, and no section is of
  a function that is gone; runtime and engine are as released; migrations are in order, and none drops what is Millrace's or what it needs.`,
  options: {},
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    warnTsconfig(project.root);
    const faults = [
      ...releaseFaults(project),
      ...migrationFaults(project),
      ...sectionFaults(project),
      ...configFaults(project),
      ...(await functionFaults(project)),
      ...(await definitionFaults(project)),
    ];
    // `sync` loads the handlers of stages too, and says the same of them.
    const once = [...new Set(faults.flatMap((fault) => fault.split('\n')))];
    if (once.length > 0) throw new CommandError(once.join('\n'));
    return values.json ? JSON.stringify({ faults }) : 'All is well: what is here can be deployed.';
  },
});

/** Resolves to the error of `sync` or the migrations that it would write, or the section that the function millrace lacks. */
async function definitionFaults(project: Project): Promise<string[]> {
  try {
    const config = readConfigText(project);
    if (withFunctionSections(project.config, config, ['millrace']) !== config) {
      return [`${project.config} has no section for function millrace: run \`npx millrace init\`.`];
    }
    await missingMigrations(project, true);
    return await typesFaults(project);
  } catch (error) {
    return [(error as Error).message];
  }
}
