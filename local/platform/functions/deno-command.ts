// How Deno is called for a function: which packages it may load, where it finds them, and what of the machine it needs for that.
import os from 'node:os';
import path from 'node:path';
import { aboveFolder, cacheFolder } from '../places.ts';

/**
 * Where functions find their packages: in the node_modules of this repository, or as each function's own deno.json says, in the
 * cache that Deno has on this machine.
 */
export type PackageSource = 'repository' | 'deno';

/** Arguments of `deno run`, `deno cache` and `deno info` for a function with this import map. */
export function packageFlags(source: PackageSource, importMap: string | undefined): string[] {
  const always = ['--no-lock', '--quiet'];
  if (source === 'repository') {
    // Not as --config: a deno.json in a function's own folder would hide this project's package.json and node_modules.
    const mapped = importMap === undefined ? [] : ['--import-map', importMap];
    return ['--node-modules-dir=manual', ...always, ...mapped];
  }
  const isConfig = importMap !== undefined && /^deno\.jsonc?$/.test(path.basename(importMap));
  const config = isConfig
    ? ['--config', importMap]
    : ['--no-config', ...(importMap ? ['--import-map', importMap] : [])];
  return ['--node-modules-dir=none', ...always, ...config];
}

/** The machine's variables about registries, proxies, certificates and Deno's cache. */
const ofMachine =
  /^(HOME|USERPROFILE|LOCALAPPDATA|XDG_CACHE_HOME|DENO_(DIR|CERT|TLS_CA_STORE|AUTH_TOKENS|V8_FLAGS)|NPM_CONFIG_REGISTRY|JSR_URL|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|(HTTPS?|NO|ALL)_PROXY)$/i;
const thisMachine = '127.0.0.1,localhost';

/** Returns the environment that Deno itself needs, beside that of the function. */
export function denoEnvironment(source: PackageSource): Record<string, string> {
  const always = { DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' };
  const { DENO_V8_FLAGS } = process.env;
  if (source === 'repository') {
    return { ...always, ...(DENO_V8_FLAGS && { DENO_V8_FLAGS }), DENO_DIR: path.join(cacheFolder, 'deno') };
  }
  const given = Object.entries(process.env).filter(([name]) => ofMachine.test(name)) as [string, string][];
  const { npm_config_registry: registry, NO_PROXY, no_proxy } = process.env;
  // npm passes its registry in lower case when it runs this; Deno reads the name in upper case.
  const named: Record<string, string> = registry ? { NPM_CONFIG_REGISTRY: registry } : {};
  const unproxied = [NO_PROXY ?? no_proxy, thisMachine].filter(Boolean).join(',');
  return {
    DENO_TLS_CA_STORE: 'mozilla,system',
    ...named,
    ...Object.fromEntries(given),
    ...always,
    // Functions call the stack itself, which no proxy reaches.
    NO_PROXY: unproxied,
    no_proxy: unproxied,
    DENO_NO_PACKAGE_JSON: '1',
  };
}

/** Returns the folders that a function may read, its own apart. */
export function readableFolders(source: PackageSource): string[] {
  return source === 'repository' ? [aboveFolder, os.tmpdir()] : [denoCache(), os.tmpdir()];
}

/** Returns where Deno keeps what it has fetched, unless it is told otherwise. */
function denoCache(): string {
  const { DENO_DIR, XDG_CACHE_HOME } = process.env;
  const byDefault = process.platform === 'darwin' ? path.join('Library', 'Caches') : '.cache';
  return DENO_DIR ?? path.join(XDG_CACHE_HOME ?? path.join(os.homedir(), byDefault), 'deno');
}
