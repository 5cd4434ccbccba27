import path from 'node:path';
import { denoBinary } from '../../local/platform/binaries.ts';
import { deployedFunctions, readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { projectFolder, runProgram, runScript } from './run-program.ts';

export const functionsFolder = path.join(projectFolder, 'supabase', 'functions');

/** Formats and lints every file; with `write` it corrects what it can. Resolves to the findings, empty when none. */
export async function checkFormat(write: boolean): Promise<string> {
  const flags = ['check', ...(write ? ['--write'] : []), '--error-on-warnings', '--max-diagnostics=20'];
  const { ok, output } = await runScript('@biomejs/biome/bin/biome', flags);
  return ok ? '' : output;
}

/** Checks the types of everything that runs on Node. Resolves to the errors, empty when none. */
export async function checkTypes(): Promise<string> {
  const { ok, output } = await runScript('typescript/bin/tsc', ['--noEmit', '--singleThreaded']);
  return ok ? '' : output;
}

/** Checks the types of the functions as Deno sees them, with the installed libraries. Resolves to the errors. */
export async function checkFunctionTypes(): Promise<string> {
  const configOf = readFunctionConfigs(functionsFolder);
  const entries = new Map<string | undefined, string[]>();
  for (const { importMap, entry } of deployedFunctions(functionsFolder).map(configOf)) {
    entries.set(importMap, [...(entries.get(importMap) ?? []), entry]);
  }
  const env = { DENO_DIR: path.join(projectFolder, '.cache', 'deno'), DENO_NO_UPDATE_CHECK: '1' };
  const findings: string[] = [];
  // The checks run one after the other, since each keeps a core busy.
  for (const [importMap, files] of entries) {
    const map = importMap === undefined ? [] : ['--import-map', importMap];
    const flags = ['check', '--quiet', '--no-lock', '--cached-only', '--node-modules-dir=manual', ...map];
    const { ok, output } = await runProgram(denoBinary(), [...flags, ...files], env);
    if (!ok) findings.push(output);
  }
  return findings.join('\n');
}

/** Checks that the pipelines are well defined, are migrated, and have their functions. Resolves to what is wrong. */
export async function checkPipelines(): Promise<string> {
  const { ok, output } = await runProgram(process.execPath, ['--import', 'tsx', 'tools/sync.ts', '--check']);
  return ok ? '' : output;
}
