// Writes what the engine is installed and uninstalled by. Git leaves both alone.
import fs from 'node:fs';
import path from 'node:path';
import { uninstallSql } from './build.ts';
import { inputDigest, isBuilt, noteBuilt, writeWhole } from './built.mjs';
import { buildMigration, unreleased } from './migration.ts';
import { readProject } from './releases.ts';

/** Builds the migration of the project in `root`, and its uninstall, where they are not what engine/ says. */
export async function writeBuilt(root: string): Promise<void> {
  if (isBuilt(root)) return;
  const source = inputDigest(root);
  const project = readProject(root);
  const built = await buildMigration(project);
  if (built) writeWhole(built.file, built.text);
  writeWhole(path.join(project.engine, 'uninstall.sql'), await uninstallSql(project.engine));
  for (const name of fs.readdirSync(project.migrations).filter((name) => unreleased.test(name))) {
    const file = path.join(project.migrations, name);
    if (file !== built?.file) fs.rmSync(file, { force: true });
  }
  noteBuilt(root, source);
}
