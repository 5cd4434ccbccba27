// `npm run release`: freezes what engine/ has become as the next level. From then on its structure and its migration stay
// as they are, and the next change builds an upgrade.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { argumentsOrExit } from './command-arguments.ts';
import { uninstallSql } from './engine/build.ts';
import { buildMigration } from './engine/migration.ts';
import { freeze, frozenFaults, lastRelease, nextTarget, readProject } from './engine/releases.ts';

const usage = 'npm run release';

/** Freezes the project in `root`. Returns what to tell; throws with the remedy where it must not be frozen. */
export async function release(root: string): Promise<string> {
  const project = readProject(root);
  const target = nextTarget(project);
  if (!target) {
    const last = lastRelease(project.engine);
    throw new Error(
      `Level ${last?.level} is frozen already, as release ${last?.version}, and nothing in engine/ has changed since.`,
    );
  }
  const [fault] = frozenFaults(project);
  if (fault) throw new Error(`${fault}.`);
  const built = await buildMigration(project);
  if (!built || read(built.file) !== built.text || read(uninstallFile(root)) !== (await uninstallSql(project.engine))) {
    throw new Error('What is built of engine/ is out of date: run `npm run check -- --write` and commit it.');
  }
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }).trim();
  if (changed) throw new Error(`Some files are not committed: commit or remove them first.\n${changed}`);
  const file = await freeze(project, target, path.basename(built.file));
  return [
    `Level ${target.level} is frozen as release ${target.version}: ${path.relative(root, file)}.`,
    'Commit that file. The next change of engine/ needs a higher version in package.json, and tables change in a new file.',
  ].join('\n');
}

/** The statement that removes the engine, for whoever wants it gone. */
export const uninstallFile = (root: string) => path.join(root, 'engine', 'uninstall.sql');

const read = (file: string) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '');

if (process.argv[1] === import.meta.filename) {
  argumentsOrExit(usage, () => parseArgs({ options: { help: { type: 'boolean', default: false } } }).values);
  try {
    console.log(await release(path.join(import.meta.dirname, '..')));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
