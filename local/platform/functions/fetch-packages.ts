// Fetches what functions import before the first request needs it, so that a slow network costs no row an attempt.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { promisify } from 'node:util';
import { denoBinary } from '../binaries.ts';
import { denoEnvironment, packageFlags } from './deno-command.ts';
import { deployedFunctions, readFunctionConfigs } from './function-config.ts';

const run = promisify(execFile);

/**
 * Has Deno fetch into its cache what the functions in `folder` import and it has not. Resolves to a sentence for each function whose
 * packages it could not get: that one will not start, the others do.
 */
export async function fetchPackages(folder: string): Promise<string[]> {
  if (!fs.existsSync(folder)) return [];
  const configOf = readFunctionConfigs(folder);
  const alike = new Map<string, string[]>();
  for (const name of deployedFunctions(folder)) {
    const { importMap } = configOf(name);
    const imports = importMap ? fs.readFileSync(importMap, 'utf8') : '';
    alike.set(imports, [...(alike.get(imports) ?? []), name]);
  }
  const told: string[] = [];
  for (const names of alike.values()) {
    // Functions that map the same imports have one call of Deno, which takes longer to start than to look.
    if ((await fault(names)) === undefined) continue;
    for (const name of names) {
      const why = await fault([name]);
      const remedy = 'Correct the import, or let this machine reach that registry; the other functions run.';
      if (why) told.push(`Function ${name} will not start: ${why}. ${remedy}`);
    }
  }
  return told;

  /** Resolves to why these functions cannot be loaded; undefined where they can. */
  async function fault(names: string[]): Promise<string | undefined> {
    const configs = names.map(configOf);
    const args = ['cache', ...packageFlags('deno', configs[0]?.importMap), ...configs.map(({ entry }) => entry)];
    const env = { PATH: process.env.PATH, ...denoEnvironment('deno') };
    return run(denoBinary(), args, { cwd: folder, env }).then(
      () => undefined,
      // Its first two lines: which package, and what the network said.
      (error: { stderr?: string; message: string }) =>
        (error.stderr || error.message)
          .replace(/^error: /, '')
          .split('\n')
          .slice(0, 2)
          .join(' ')
          .replace(/\s+/g, ' '),
    );
  }
}
