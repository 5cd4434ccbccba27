// A real Chromium for tests of pages. It comes from the system's packages, and is installed where it is missing.
import { spawnSync } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { findChromium, installChromium } from '../../../local/services/scraper/find-chromium.ts';

/** Starts Chromium without a window. Throws, saying what to install, when there is none and none can be installed. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = chromiumPath();
  // The sandbox needs rights that root in a container has not got; the tests load pages of their own alone. A process that draws as a
  // graphics card would takes a fifth of a browser's CPU.
  const args = [
    '--no-sandbox',
    '--disable-dev-shm-usage',
    '--disable-gpu',
    '--disable-extensions',
    '--js-flags=--single-threaded',
  ];
  return chromium.launch({ executablePath, args });
}

/** The program of Chromium, which is installed where it is missing. Throws where it cannot be. */
export function chromiumPath(): string {
  return findChromium() ?? installed();
}

function installed(): string {
  const isRoot = process.getuid?.() === 0;
  const [program = '', ...before] = isRoot ? ['sh', '-c'] : ['sudo', '-n', 'sh', '-c'];
  // Tests of several pages may find it missing at once, and apt serves one at a time.
  const inTurn = `flock "${path.join(os.tmpdir(), 'millrace-chromium.lock')}" sh -c 'command -v chromium-headless-shell || (${installChromium})'`;
  const { status, stderr } = spawnSync(program, [...before, inTurn], {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  const found = findChromium();
  if (found) return found;
  throw new Error(
    `There is no Chromium, and "${installChromium}" ended with ${status}: ${stderr?.slice(-500)}\n` +
      'Install Chromium or Chrome yourself, or name its program in CHROMIUM_PATH.',
  );
}
