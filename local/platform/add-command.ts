// The command by which a project gets a package: npm's, or that of the package manager whose lock file is there.
import fs from 'node:fs';
import path from 'node:path';

const managers: [lockFile: string, command: string][] = [
  ['pnpm-lock.yaml', 'pnpm add -D'],
  ['yarn.lock', 'yarn add -D'],
  ['bun.lock', 'bun add -d'],
  ['bun.lockb', 'bun add -d'],
  ['package-lock.json', 'npm i -D'],
];

/** Returns the command that adds development packages to the project in `root`, by the nearest lock file. */
export function addCommand(root: string): string {
  for (let folder = path.resolve(root); ; folder = path.dirname(folder)) {
    const isThere = (name: string) => fs.existsSync(path.join(folder, name));
    const [lockFile, command] = managers.find(([name]) => isThere(name)) ?? [];
    if (lockFile && command) {
      // pnpm refuses to add to the root of a workspace unless it is told so.
      const isRoot = path.resolve(root) === folder && lockFile === 'pnpm-lock.yaml' && isThere('pnpm-workspace.yaml');
      return isRoot ? `${command} -w` : command;
    }
    if (path.dirname(folder) === folder) return 'npm i -D';
  }
}
