import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { supabaseBinary } from '../../local/platform/binaries.ts';

export const projectFolder = path.join(import.meta.dirname, '..', '..');

export interface Outcome {
  ok: boolean;
  stdout: string;
  /** Both outputs, one after the other. */
  output: string;
}

/** Runs a program in the project's folder; `input` goes to its standard input. Never rejects. */
export function runProgram(
  file: string,
  args: string[],
  env: Record<string, string> = {},
  input = '',
): Promise<Outcome> {
  const options = { cwd: projectFolder, env: { ...process.env, NO_COLOR: '1', ...env }, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve) => {
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      resolve({ ok: !error, stdout, output: `${stdout}${stderr}`.trim() || String(error?.message ?? '') });
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

/** Runs a program of an installed npm package, by the path of its script in node_modules. */
export function runScript(script: string, args: string[], input = ''): Promise<Outcome> {
  return runProgram(process.execPath, [path.join(projectFolder, 'node_modules', script), ...args], {}, input);
}

/** Runs the supabase CLI in a work folder of its own, so that it leaves no notes in the project. */
export async function runSupabase(args: string[]): Promise<Outcome> {
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-cli-'));
  try {
    fs.mkdirSync(path.join(work, 'supabase'));
    fs.writeFileSync(path.join(work, 'supabase', 'config.toml'), 'project_id = "millrace"\n');
    const env = { SUPABASE_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' };
    return await runProgram(supabaseBinary(), [...args, '--workdir', work, '--agent', 'no'], env);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}
