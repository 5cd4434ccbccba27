import { spawn } from 'node:child_process';
import path from 'node:path';

export const projectFolder = path.join(import.meta.dirname, '..', '..');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs Node with `args` in `cwd`, not at a terminal, until it ends; kills it after `timeoutMs` milliseconds. */
export function runNode(
  args: string[],
  options: { cwd?: string; env?: Record<string, string>; timeoutMs?: number } = {},
): Promise<Ended> {
  const { cwd = projectFolder, env = {}, timeoutMs = 150_000 } = options;
  // Vitest sets it for its own output.
  const { FORCE_COLOR, ...inherited } = process.env;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd,
      env: { ...inherited, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
