// npm run test:postgres -- 15: the tests of the engine on another major version of Postgres, npm's of that version, fetched once.
// Folders or files after it are run instead of tests/engine.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { embeddedPostgres } from '../../local/platform/binaries.ts';
import { packedVersions } from '../../local/platform/choose-postgres.ts';

const root = path.join(import.meta.dirname, '..', '..');
const [major = '', ...chosen] = process.argv.slice(2);
const version = packedVersions[Number(major)];
if (!version) {
  console.error(
    `npm run test:postgres -- MAJOR [FILE …], where MAJOR is one of ${Object.keys(packedVersions).join(', ')}`,
  );
  process.exit(2);
}
const folder = path.join(root, '.cache', `postgres-${version}`);
const packed = path.join(folder, 'node_modules', embeddedPostgres, 'native');
if (!fs.existsSync(packed)) {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'package.json'), '{"private": true}');
  execFileSync('npm', ['install', '--no-audit', '--no-fund', `${embeddedPostgres}@${version}`], {
    cwd: folder,
    stdio: 'inherit',
  });
}
const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', ...(chosen.length > 0 ? chosen : ['tests/engine'])], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, MILLRACE_POSTGRES: packed },
});
process.exit(status ?? 1);
