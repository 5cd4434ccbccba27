// The demos in the tests' own process, which spares each of them the start of Node and the loading of all that a stack needs. Other tests show that the
// command itself leads to them.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { vi } from 'vitest';
import { demos } from '../../local/demo/demos.ts';
import { readArguments } from '../../local/demo/read-arguments.ts';
import { scratchFolder } from '../../local/platform/scratch-folder.ts';
import type { Ended } from './run-command.ts';

/** Does what `npm run demo` does with these arguments and settings. Resolves to what it would print, without colours. */
export async function demoHere(args: string[], env: Record<string, string>): Promise<Ended> {
  let stdout = '';
  const take = (text: unknown) => {
    stdout += stripVTControlCharacters(String(text));
    return true;
  };
  const spies = [
    vi.spyOn(console, 'log').mockImplementation((line) => void take(`${line}\n`)),
    vi.spyOn(process.stdout, 'write').mockImplementation(take),
  ];
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  try {
    const given = readArguments(args);
    const run = await demos[given.demo]();
    const code = await run(given, new AbortController().signal);
    return { code, stdout, stderr: '' };
  } catch (error) {
    return { code: 1, stdout, stderr: `${(error as Error).message}\n` };
  } finally {
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
  }
}

/** A folder for all the temporary files of a demo. The code that tsx has compiled for other processes is found in it too. */
export function temporaryFolder(): string {
  const folder = fs.mkdtempSync(path.join(scratchFolder(), 'demo-test-'));
  // Postgres may run as another user, who must get through to its own folder in here.
  fs.chmodSync(folder, 0o711);
  const compiled = `tsx-${process.geteuid?.()}`;
  fs.mkdirSync(path.join(os.tmpdir(), compiled), { recursive: true });
  fs.symlinkSync(path.join(os.tmpdir(), compiled), path.join(folder, compiled));
  return folder;
}
