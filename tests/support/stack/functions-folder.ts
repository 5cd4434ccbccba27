// A copy of the project's Edge Functions, in which a test leaves some out or puts others in their place.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const supabase = path.join(import.meta.dirname, '..', '..', '..', 'supabase');

export interface FunctionsFolder {
  path: string;
  remove(): void;
}

/**
 * Makes the folder. `replace` gives the modules of some functions, `add` those of functions of the test's own; `leaveOut`
 * names functions that are not deployed.
 */
export function functionsFolder(options: {
  replace?: Record<string, string>;
  add?: Record<string, string>;
  leaveOut?: string[];
  /** Makes the functions reach the project at the URL in this environment variable. */
  projectUrlFrom?: string;
}): FunctionsFolder {
  const { replace = {}, add = {}, leaveOut = [], projectUrlFrom } = options;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-functions-'));
  fs.copyFileSync(path.join(supabase, 'config.toml'), path.join(folder, 'config.toml'));
  fs.mkdirSync(path.join(folder, 'functions'));
  fs.copyFileSync(path.join(supabase, 'functions', 'deno.json'), path.join(folder, 'functions', 'deno.json'));
  const names = fs.readdirSync(path.join(supabase, 'functions')).filter((name) => /^[a-z][a-z-]*$/.test(name));
  for (const name of Object.keys(add)) {
    fs.appendFileSync(path.join(folder, 'config.toml'), `\n[functions.${name}]\nverify_jwt = false\n`);
  }
  for (const name of [...names, ...Object.keys(add)]) {
    if (leaveOut.includes(name)) continue;
    const module = pathToFileURL(replace[name] ?? add[name] ?? path.join(supabase, 'functions', name, 'index.ts'));
    const lines = projectUrlFrom ? [`Deno.env.set('SUPABASE_URL', Deno.env.get('${projectUrlFrom}'));`] : [];
    fs.mkdirSync(path.join(folder, 'functions', name), { recursive: true });
    const entry = path.join(folder, 'functions', name, 'index.ts');
    fs.writeFileSync(entry, [...lines, `await import('${module.href}');`, ''].join('\n'));
  }
  return { path: path.join(folder, 'functions'), remove: () => fs.rmSync(folder, { recursive: true, force: true }) };
}
