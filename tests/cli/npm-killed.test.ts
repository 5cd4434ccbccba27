import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isRunning } from '../../local/platform/child-processes.ts';
import { until } from '../support/until.ts';
import { projectFolder } from './run-command.ts';

let folder: string;
let npm: ChildProcess;
let pids: number[];

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'npm-killed-test-'));
  pids = [];
});
afterEach(() => {
  npm.kill('SIGKILL');
  for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGKILL');
  fs.rmSync(folder, { recursive: true, force: true });
});

describe.runIf(process.platform === 'linux')('a command started by npm', () => {
  it('stops as on SIGTERM when npm is told to stop, and leaves nothing running', async () => {
    const script = path.join(folder, 'script.mts');
    const note = path.join(folder, 'note');
    fs.writeFileSync(
      script,
      `import { writeFileSync } from 'node:fs';
       process.on('SIGTERM', () => { writeFileSync(${JSON.stringify(`${note}.end`)}, ''); process.exit(0); });
       setInterval(() => {}, 1000);
       writeFileSync(${JSON.stringify(note)}, process.pid + ' ' + process.ppid);`,
    );
    const start = `node ${path.join(projectFolder, 'tools', 'bootstrap.mjs')} ${path.relative(projectFolder, script)}`;
    fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ scripts: { start } }));
    npm = spawn('npm', ['run', 'start'], { cwd: folder, stdio: 'ignore' });
    await until(() => fs.existsSync(note) && fs.readFileSync(note, 'utf8').includes(' '), 20_000);
    pids = fs.readFileSync(note, 'utf8').split(' ').map(Number);
    expect(pids.every(isRunning)).toBe(true);
    npm.kill('SIGTERM');
    await until(() => !pids.some(isRunning));
    expect(fs.existsSync(`${note}.end`)).toBe(true);
  });

  it('ends when npm is killed, though the shell between them lives on', async () => {
    const script = path.join(folder, 'script.mts');
    const note = path.join(folder, 'note');
    fs.writeFileSync(
      script,
      `import { writeFileSync } from 'node:fs';
       import { whenNpmEnds } from ${JSON.stringify(path.join(projectFolder, 'local/platform/parent-ends.ts'))};
       whenNpmEnds(() => process.exit(0));
       setInterval(() => {}, 1000);
       writeFileSync(${JSON.stringify(note)}, process.pid + ' ' + process.ppid);`,
    );
    // A shell with a further command does not put the first in its own place.
    const tsx = path.join(projectFolder, 'node_modules', 'tsx', 'dist', 'esm', 'index.mjs');
    const start = `node --import ${tsx} ${script}; true`;
    fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ scripts: { start } }));
    npm = spawn('npm', ['run', 'start'], { cwd: folder, stdio: 'ignore' });
    await until(() => fs.existsSync(note) && fs.readFileSync(note, 'utf8').includes(' '), 20_000);
    pids = fs.readFileSync(note, 'utf8').split(' ').map(Number);
    expect(pids.every(isRunning)).toBe(true);
    npm.kill('SIGKILL');
    await until(() => !pids.some(isRunning));
  });
});
