// What the package ships for a project: the runtime, the engine's migration, and the versions that functions pin.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** What `supabase/functions/_millrace/manifest.json` says of the runtime beside it. */
export interface Manifest {
  release: string;
  level: number;
  contract: number;
  /** What a function's deno.json maps, by name: packages that the runtime imports, in the versions tried with it. */
  imports: Record<string, string>;
  /** The SHA-256 of each file, by its path in the runtime's folder. */
  files: Record<string, string>;
}

/** The folder of the package: this file lies two below it, and bundled, in `dist/`, one. */
export const packageFolder = path.join(
  import.meta.dirname,
  path.basename(import.meta.dirname) === 'dist' ? '..' : '../..',
);

export const runtimeFolder = 'supabase/functions/_millrace';
/** In the order in which a person meets them. */
export const runtimePackages = ['zod', '@supabase/postgrest-js', 'standardwebhooks', 'ipaddr.js'];

const shippedRuntime = path.join(packageFolder, runtimeFolder);

export const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** The runtime's own files but for the manifest, by their path in its folder. */
export function runtimeFiles(folder = shippedRuntime): Record<string, string> {
  const names = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    names
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => path.join(entry.parentPath, entry.name))
      .map((file) => [path.relative(folder, file).split(path.sep).join('/'), fs.readFileSync(file, 'utf8')] as const)
      .sort(([a], [b]) => a.localeCompare(b)),
  );
}

/** What a runtime's folder says of itself; without one, what this package ships. */
export function readManifest(folder = path.join(packageFolder, 'dist')): Manifest {
  return JSON.parse(fs.readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
}

/** The migration that installs the engine. */
export function engineInstall(): string {
  const folder = path.join(packageFolder, 'supabase', 'migrations');
  const name = fs.readdirSync(folder).find((file) => /^\d{14}_millrace(_\d[\d.]*)?\.sql$/.test(file));
  if (!name) throw new Error(`${folder} has no migration of the engine: the package is not whole, install it again.`);
  return fs.readFileSync(path.join(folder, name), 'utf8');
}

export const engineUninstall = () => fs.readFileSync(path.join(packageFolder, 'engine', 'uninstall.sql'), 'utf8');

/** The level of the engine that a migration's text installs or upgrades to; null where it has none. */
export function levelIn(text: string): number | null {
  const [, level] = /function millrace\.engine\([\s\S]*?level := (\d+);/.exec(text) ?? [];
  return level === undefined ? null : Number(level);
}

/** A function's deno.json, which maps what the runtime imports. */
export const denoJson = ({ imports }: Manifest) => `${JSON.stringify({ imports }, null, 2)}\n`;
