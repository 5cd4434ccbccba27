import fs from 'node:fs';
import path from 'node:path';

// The first has no window at all, not even one that nobody sees, and takes half the time.
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const macPrograms = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** The command that installs Chromium on Debian and its relatives, as root. */
export const installChromium =
  'apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell';

/** Returns the program of Chromium or Chrome: CHROMIUM_PATH, else the first that this machine has; undefined without one. */
export function findChromium(env: Record<string, string | undefined> = process.env): string | undefined {
  if (env.CHROMIUM_PATH) return env.CHROMIUM_PATH;
  const folders = (env.PATH ?? process.env.PATH ?? '').split(path.delimiter);
  const files = names.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return [...files, ...macPrograms].find((file) => fs.existsSync(file));
}
