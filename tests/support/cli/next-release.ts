// The package that a project has installed, as that of another release than today's.
import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { packedRuntime } from '../../../cli/project/shipped.ts';
import type { NextLevel } from '../engine/releases.ts';

/** Has `init` install the level before the next. Takes the folder that holds node_modules. */
export function releaseFormer(project: string, next: NextLevel): void {
  writeEngine(project, 'install', next.installFormer);
}

/** Turns the package into that of a release whose engine is a level further. */
export function releaseNext(project: string, next: NextLevel): void {
  const shipped = path.join(project, 'node_modules', 'millrace');
  const manifest = JSON.parse(fs.readFileSync(path.join(shipped, 'dist', 'manifest.json'), 'utf8'));
  const packed = path.join(shipped, packedRuntime);
  const runtime = JSON.parse(brotliDecompressSync(fs.readFileSync(packed)).toString());
  runtime['mod.ts'] += '// Of the next release.\n';
  fs.writeFileSync(packed, quicklyCompressed(JSON.stringify(runtime)));
  const text = JSON.stringify({ ...manifest, release: '99.0.0', level: next.level });
  fs.writeFileSync(path.join(shipped, 'dist', 'manifest.json'), text);
  writeEngine(project, 'install', next.installNext);
  writeEngine(project, `step-${next.level}`, next.upgrade);
  writeEngine(project, 'uninstall', next.uninstallNext);
}

function writeEngine(project: string, name: string, sql: string): void {
  fs.writeFileSync(
    path.join(project, 'node_modules', 'millrace', 'dist', 'engine', `${name}.sql.br`),
    quicklyCompressed(sql),
  );
}

/** At its best it would take a second for each. */
const quicklyCompressed = (text: string) =>
  brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
