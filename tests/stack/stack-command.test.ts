import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readPort } from '../../cli/read-port.ts';
import { childProcesses, isRunning } from '../../local/platform/child-processes.ts';
import { freePort } from '../../local/platform/free-port.ts';
import { startStack } from '../../local/platform/stack.ts';
import { bundledProgram } from '../support/runtime/bundled-program.ts';
import { until } from '../support/until.ts';

const projectFolder = path.join(import.meta.dirname, '..', '..');
const children: ChildProcess[] = [];

beforeAll(async () => {
  bundled.push(process.execPath, 'tools/bootstrap.mjs', await bundledProgram('tools/stack.ts'), '--json');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

interface Addresses {
  dbUrl: string;
  apiUrl: string;
  functionsUrl: string;
  secretKey: string;
  publishableKey: string;
  serviceRoleKey: string;
  anonKey: string;
  scraperUrl: string;
  ocrUrl: string;
  transcriberUrl: string;
  llmUrl: string;
  dataDir: string;
  operateUrl: string;
}

const byNpm = ['npm', 'run', '-s', 'stack', '--', '--json'];
/** A program that starts another one and waits for it. */
const aStarter = [
  ...[process.execPath, '-e'],
  "require('node:child_process').spawn(process.argv[1], process.argv.slice(2), { stdio: 'inherit' })",
];
/** The same from one file of JavaScript, which starts in half of the processor's time. */
const bundled: string[] = [];

/** Starts the stack and reads its line. */
async function startCommand([program = '', ...args] = bundled): Promise<{
  child: ChildProcess;
  lines: string[];
  addresses: Addresses;
}> {
  // The caller of the tests may have done so by npm.
  const { npm_lifecycle_event, ...env } = process.env;
  const child = spawn(program, args, { cwd: projectFolder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const lines: string[] = [];
  let errors = '';
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => lines.push(line));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(errors);
    return lines.length > 0;
  }, 30_000);
  return { child, lines, addresses: JSON.parse(lines[0] as string) };
}

/** Runs the command until it ends by itself. */
async function runCommand(...options: string[]): Promise<{ code: number | null; lines: string[] }> {
  const [program = '', ...args] = [...bundled, ...options];
  // Where CI is set, errors come in colours unless told otherwise.
  const { FORCE_COLOR, ...inherited } = process.env;
  const env = { ...inherited, NO_COLOR: '1' };
  const child = spawn(program, args, { cwd: projectFolder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      written += text;
    });
  }
  await until(() => child.exitCode !== null, 20_000);
  return { code: child.exitCode, lines: written.trimEnd().split('\n') };
}

async function rowsOf(dbUrl: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: dbUrl });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

/** The ids of the processes that keep this data folder or its parts open, by their command lines. */
function processesOf(dataDir: string): number[] {
  const ids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.map(Number).filter((pid) => {
    try {
      return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dataDir) && isRunning(pid);
    } catch {
      return false;
    }
  });
}

/** Edits a function that has run, as an editor does that saves it, until a request of it starts a new process. */
async function expectReloaded(child: ChildProcess, { functionsUrl }: Addresses): Promise<void> {
  const [stackProcess = 0] = childProcesses(child.pid as number);
  const request = () => fetch(`${functionsUrl}/millrace/poll`, { method: 'POST' });
  const isFunction = (pid: number) => fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('deno');
  await request();
  const before = childProcesses(stackProcess).filter(isFunction);
  expect(before).toHaveLength(1);
  await request();
  expect(childProcesses(stackProcess).filter(isFunction)).toEqual(before);
  fs.utimesSync(path.join(projectFolder, 'supabase', 'functions', 'millrace', 'index.ts'), new Date(), new Date());
  await until(async () => {
    await request();
    return childProcesses(stackProcess).some((pid) => !before.includes(pid) && isFunction(pid));
  });
}

describe.runIf(process.platform === 'linux')('npm run stack -- --json', () => {
  it('prints one line with every address when ready, and leaves nothing behind at SIGTERM', async () => {
    const { child, lines, addresses } = await startCommand();
    expect(Object.keys(addresses)).toEqual([
      ...['dbUrl', 'apiUrl', 'functionsUrl', 'secretKey', 'publishableKey', 'serviceRoleKey', 'anonKey'],
      ...['scraperUrl', 'ocrUrl', 'transcriberUrl', 'llmUrl', 'dataDir', 'operateUrl'],
    ]);
    const client = new pg.Client({ connectionString: addresses.dbUrl });
    await client.connect();
    const { rows } = await client.query('select current_user as name');
    expect(rows).toEqual([{ name: 'postgres' }]);
    await client.end();
    const answer = await fetch(`${addresses.apiUrl}/rest/v1/`, { headers: { apikey: addresses.secretKey } });
    expect(answer.status).toBe(200);
    expect(processesOf(addresses.dataDir).length).toBeGreaterThan(0);
    await expectReloaded(child, addresses);

    child.kill('SIGTERM');
    await until(() => child.exitCode !== null);
    expect(child.exitCode).toBe(0);
    expect(lines).toHaveLength(1);
    expect(processesOf(addresses.dataDir)).toEqual([]);
    expect(fs.existsSync(addresses.dataDir)).toBe(false);
  });

  it('keeps data and addresses between runs, for one stack at a time, and ends cleanly when npm is told to stop', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-test-'));
    fs.chmodSync(folder, 0o711);
    const [port, dbPort] = [await freePort(), await freePort()];
    const options = ['--data', path.join(folder, 'a', 'b'), '--port', `${port}`, '--db-port', `${dbPort}`];
    try {
      const first = await startCommand([...bundled, ...options]);
      expect(first.addresses).toMatchObject({
        apiUrl: `http://127.0.0.1:${port}`,
        dbUrl: expect.stringContaining(`@127.0.0.1:${dbPort}/`),
      });
      await rowsOf(first.addresses.dbUrl, 'create table public.kept (id int)');
      expect(await runCommand('--data', path.join(folder, 'a', 'b'))).toEqual({
        code: 1,
        lines: [
          expect.stringMatching(
            /^Another stack over this project runs already, at http:\S+ \(process \d+\)\. This one gets a database/,
          ),
          expect.stringMatching(/^The data folder .*b is in use by another stack, process \d+: stop that one/),
        ],
      });
      await expect(startStack({ port })).rejects.toThrow(
        `Port ${port} of 127.0.0.1 is in use: give --port another one, or leave it out for a free one.`,
      );
      await expect(startStack({ dbPort })).rejects.toThrow(
        `Port ${dbPort} of 127.0.0.1 is in use: give --db-port another one, or leave it out for a free one.`,
      );
      first.child.kill('SIGTERM');
      await until(() => first.child.exitCode !== null);

      const second = await startCommand([...byNpm, ...options]);
      // The local services' addresses are for the functions alone, which are told anew.
      const lasting = (['dbUrl', 'apiUrl', 'functionsUrl', 'secretKey', 'anonKey', 'dataDir'] as const).map((name) => [
        name,
        first.addresses[name],
      ]);
      expect(second.addresses).toMatchObject(Object.fromEntries(lasting));
      expect(await rowsOf(second.addresses.dbUrl, 'select * from public.kept')).toEqual([]);
      second.child.kill('SIGINT');
      await until(() => second.child.exitCode !== null);
      expect(second.child.exitCode).toBe(0);
      expect(processesOf(second.addresses.dataDir)).toEqual([]);
    } finally {
      fs.rmSync(folder, { recursive: true, force: true });
    }
  });

  it('says in one line what is wrong with a folder or a port', async () => {
    await expect(startStack({ dataDir: import.meta.filename })).rejects.toThrow(/^The data folder .* is a file/);
    const { code, lines } = await runCommand('--db-port', 'abc');
    expect([code, lines[0]]).toEqual([2, '--db-port is "abc", but must be a port from 1 to 65535.']);
    for (const wrong of ['0', '65536', '1e3', '']) {
      const fault = `--port is "${wrong}", but must be a port from 1 to 65535.`;
      expect(() => readPort('--port', wrong)).toThrow(fault);
    }
    expect(['1', '65535', undefined].map((given) => readPort('--port', given))).toEqual([1, 65_535, undefined]);
  });

  it.each([
    ['npm', byNpm],
    ['it', bundled],
  ])('ends with its parts when the program that started %s is killed', async (_, command) => {
    const { child, addresses } = await startCommand([...aStarter, ...command]);
    await fetch(`${addresses.functionsUrl}/millrace/poll`, { method: 'POST' });
    expect(processesOf(addresses.dataDir).length).toBeGreaterThan(0);
    child.kill('SIGKILL');
    await until(() => processesOf(addresses.dataDir).length === 0 && !fs.existsSync(addresses.dataDir));
    await expect(fetch(addresses.apiUrl)).rejects.toThrow();
  });

  it('runs beside another one, and leaves nothing behind when whoever started it is killed', async () => {
    const [one, two] = await Promise.all([startCommand(), startCommand()]);
    expect(one.addresses.apiUrl).not.toBe(two.addresses.apiUrl);
    one.child.kill('SIGKILL');
    await until(() => processesOf(one.addresses.dataDir).length === 0 && !fs.existsSync(one.addresses.dataDir));
    const headers = { apikey: two.addresses.secretKey };
    expect((await fetch(`${two.addresses.apiUrl}/rest/v1/`, { headers })).status).toBe(200);

    // The stack's own process, with a function running and no chance to clean up.
    await fetch(`${two.addresses.functionsUrl}/millrace/poll`, { method: 'POST' });
    const [stackProcess] = childProcesses(two.child.pid as number);
    const parts = childProcesses(stackProcess as number);
    expect(parts.length).toBeGreaterThanOrEqual(3);
    process.kill(stackProcess as number, 'SIGKILL');
    await until(() => !parts.some(isRunning) && !fs.existsSync(two.addresses.dataDir));
  });
});
