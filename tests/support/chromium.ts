// A real Chromium for tests of pages. It comes from the system's packages, and is installed where it is missing.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';

// The first has no window at all, not even one that nobody sees, and takes half the time.
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Starts Chromium without a window. Throws, saying what to install, when there is none and none can be installed. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = onPath() ?? installed();
  // The sandbox needs rights that root in a container has not got; the tests load pages of their own alone.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

function onPath(): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const files = names.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return [process.env.CHROMIUM_PATH ?? '', ...files].find((file) => file !== '' && fs.existsSync(file));
}

function installed(): string {
  const isRoot = process.getuid?.() === 0;
  const install = 'apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell';
  const [program = '', ...before] = isRoot ? ['sh', '-c'] : ['sudo', '-n', 'sh', '-c'];
  // Tests of several pages may find it missing at once, and apt serves one at a time.
  const inTurn = `flock "${path.join(os.tmpdir(), 'millrace-chromium.lock')}" sh -c 'command -v chromium-headless-shell || (${install})'`;
  const { status, stderr } = spawnSync(program, [...before, inTurn], {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  const found = onPath();
  if (found) return found;
  throw new Error(
    `There is no Chromium, and "${install}" ended with ${status}: ${stderr?.slice(-500)}\n` +
      'Install Chromium or Chrome yourself, or name its program in CHROMIUM_PATH.',
  );
}
