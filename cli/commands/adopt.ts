// millrace adopt: a migration with the functions that adopt rows, which a project needs once, and one that drops them.

import { CommandError } from '../command-error.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import { stampsAfter } from '../migration-stamps.ts';
import { type Change, withoutReturns } from '../project/change-set.ts';
import { engineState, migrationTexts, sinceUninstall } from '../project/engine-level.ts';
import { findProject, migrationsOf, type Project } from '../project/find-project.ts';
import { adoptionFunctions } from '../project/shipped.ts';
import { writeChanges } from '../project/write-changes.ts';

export const adopt = defineCommand({
  usage: `npx millrace adopt [--done] [--dry-run]
  Writes a migration that creates millrace.adopt(), which gives rows that were there before their pipeline a value of its status
  column. The engine has no such function by itself, since a project adopts once.
  --done  writes a migration that drops the function again`,
  options: { ...writingOptions, done: { type: 'boolean', default: false } },
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    const next = values.done
      ? 'npx supabase db push --remote.'
      : 'npx supabase db push --remote, then adopt as docs/adopting.md says, and npx millrace adopt --done at the end.';
    return writeChanges(project, await adoptionChanges(project, values.done), values, next);
  },
});

const dropping = `-- All rows are adopted and have begun.
drop function if exists millrace.adopt(text, text, text, boolean, text, int);
drop function if exists millrace.adopt_portion(millrace.pipelines, text, regproc, text, int);
drop function if exists millrace.begin(text, text, int);
drop function if exists millrace.adopting_pipeline(text, text, int);
`;

/** Resolves to the migration that the project lacks; none where its newest about adoption has the same text. */
async function adoptionChanges(project: Project, isDone: boolean): Promise<Change[]> {
  const texts = migrationTexts(project).map(withoutReturns);
  if (engineState(texts).level === null) {
    throw new CommandError('No migration of this project installs the engine: run `npx millrace init` first.');
  }
  const text = isDone ? dropping : adoptionFunctions();
  const last = sinceUninstall(texts).findLast((one) => /function (?:if exists )?millrace\.adopt\(/.test(one));
  if (last === text || (isDone && last === undefined)) return [];
  const [stamp] = await stampsAfter(migrationsOf(project), 1);
  return [{ file: `supabase/migrations/${stamp}_${isDone ? 'end_adoption' : 'adopt_rows'}.sql`, text }];
}
