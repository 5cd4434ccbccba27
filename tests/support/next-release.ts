// The package that a project has installed, as that of another release than today's.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import type { NextLevel } from './releases.ts';

/** Has `init` install the level before the next. Takes the folder that holds node_modules. */
export function releaseFormer(project: string, next: NextLevel): void {
  writeEngine(project, 'install', next.installFormer);
}

/** Turns the package into that of a release whose engine is a level further. */
export function releaseNext(project: string, next: NextLevel): void {
  const shipped = path.join(project, 'node_modules', 'millrace');
  const manifest = JSON.parse(fs.readFileSync(path.join(shipped, 'dist', 'manifest.json'), 'utf8'));
  const runtime = path.join(shipped, 'supabase', 'functions', '_millrace', 'mod.ts');
  fs.appendFileSync(runtime, '// Of the next release.\n');
  manifest.files['mod.ts'] = createHash('sha256').update(fs.readFileSync(runtime)).digest('hex');
  const text = JSON.stringify({ ...manifest, release: '99.0.0', level: next.level });
  fs.writeFileSync(path.join(shipped, 'dist', 'manifest.json'), text);
  writeEngine(project, 'install', next.installNext);
  writeEngine(project, `step-${next.level}`, next.upgrade);
  writeEngine(project, 'uninstall', next.uninstallNext);
}

function writeEngine(project: string, name: string, sql: string): void {
  fs.writeFileSync(
    path.join(project, 'node_modules', 'millrace', 'dist', 'engine', `${name}.sql.br`),
    // At its best it would take a second for each.
    brotliCompressSync(sql, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  );
}
