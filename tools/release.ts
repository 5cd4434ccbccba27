// `npm run release`: freezes what engine/ has become as the next level. From then on its structure and its migration stay
// as they are, and the next change builds an upgrade.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { argumentsOrExit } from './command-arguments.ts';
import { buildMigration } from './engine/migration.ts';
import { freeze, frozenFaults, lastRelease, nextTarget, readProject } from './engine/releases.ts';
import { writeBuilt } from './engine/write-built.ts';

const usage = 'npm run release';

/** Freezes the project in `root`. Returns what to tell; throws with the remedy where it must not be frozen. */
export async function release(root: string): Promise<string> {
  const project = readProject(root);
  const target = nextTarget(project);
  const built = await buildMigration(project);
  if (!target || !built) {
    const last = lastRelease(project.engine);
    throw new Error(
      `Level ${last?.level} is frozen already, as release ${last?.version}, and nothing in engine/ has changed since.`,
    );
  }
  const [fault] = frozenFaults(project);
  if (fault) throw new Error(`${fault}.`);
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }).trim();
  if (changed) throw new Error(`Some files are not committed: commit or remove them first.\n${changed}`);
  const migration = built.file.replace(/\.sql$/, `_${target.version}.sql`);
  fs.writeFileSync(migration, built.text);
  const file = await freeze(project, target, path.basename(migration));
  await writeBuilt(root);
  return [
    `Level ${target.level} is frozen as release ${target.version}. Commit`,
    `  ${path.relative(root, migration)}`,
    `  ${path.relative(root, file)}`,
    'The next change of engine/ needs a higher version in package.json, and tables change in a new file.',
  ].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  argumentsOrExit(usage, () => parseArgs({ options: { help: { type: 'boolean', default: false } } }).values);
  try {
    console.log(await release(path.join(import.meta.dirname, '..')));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
