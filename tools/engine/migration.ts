// The migration that engine/ is built into: which file it is, and what it says.
import path from 'node:path';
import { stampAfter } from '../../cli/migration-stamps.ts';
import { installSql, upgradeSql } from './build.ts';
import { nextTarget, type Project } from './releases.ts';

/** A migration that is built, and what it is to hold. */
export interface Built {
  file: string;
  text: string;
}

/** The file name of the migration of a level that is not frozen. The release writes its version into the name. */
export const unreleased = /^\d{14}_millrace\.sql$/;

/** Resolves to the migration that is not frozen; null while engine/ is what the last release froze. */
export async function buildMigration(project: Project): Promise<Built | null> {
  const target = nextTarget(project);
  if (!target) return null;
  const { engine, migrations } = project;
  const { from } = target;
  const text = from ? await upgradeSql(engine, { ...target, from }) : await installSql(engine, target);
  // The same in every clone, and before whatever needs this level.
  const stamp = from ? stampAfter(from.migration) : '20261101000000';
  return { file: path.join(migrations, `${stamp}_millrace.sql`), text };
}
