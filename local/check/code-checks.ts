import fs from 'node:fs';
import path from 'node:path';
import { denoBinary } from '../binaries.ts';
import { projectFolder, runProgram, runScript } from './run-program.ts';

const functionsFolder = path.join('supabase', 'functions');

/** Formats and lints every file; with `write` it corrects what it can. Resolves to the findings, empty when none. */
export async function checkFormat(write: boolean): Promise<string> {
  const flags = ['check', ...(write ? ['--write'] : []), '--error-on-warnings', '--max-diagnostics=20'];
  const { ok, output } = await runScript('@biomejs/biome/bin/biome', flags);
  return ok ? '' : output;
}

/** Checks the types of everything that runs on Node. Resolves to the errors, empty when none. */
export async function checkTypes(): Promise<string> {
  const { ok, output } = await runScript('typescript/bin/tsc', ['--noEmit']);
  return ok ? '' : output;
}

/** Checks the types of the functions as Deno sees them, with the installed libraries. Resolves to the errors. */
export async function checkFunctionTypes(): Promise<string> {
  const folders = fs.readdirSync(path.join(projectFolder, functionsFolder)).sort();
  const entries = folders
    .map((name) => path.join(functionsFolder, name, 'index.ts'))
    .filter((file) => fs.existsSync(path.join(projectFolder, file)));
  // package.json and deno.json name the same versions; only through the former does Deno find what npm installed.
  const flags = ['check', '--quiet', '--no-config', '--no-lock', '--cached-only', '--node-modules-dir=manual'];
  const env = { DENO_DIR: path.join(projectFolder, '.cache', 'deno'), DENO_NO_UPDATE_CHECK: '1' };
  const { ok, output } = await runProgram(denoBinary(), [...flags, ...entries], env);
  return ok ? '' : output;
}

/** Looks whether the pipelines are well defined, migrated, and have their functions. Resolves to what is amiss. */
export async function checkPipelines(): Promise<string> {
  const { ok, output } = await runProgram(process.execPath, ['--import', 'tsx', 'local/pipelines-sync.ts', '--check']);
  return ok ? '' : output;
}
