// Workers as processes of their own, over a database whose functions a server offers as the Data API does.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type pg from 'pg';
import { onTestFinished } from 'vitest';
import { denoBinary } from '../../../local/platform/binaries.ts';
import { databaseRpc } from '../../../packages/test/database-rpc.ts';
import type { Engine } from '../engine.ts';
import { until } from '../until.ts';
import { bundledProgram } from './bundled-program.ts';

const root = path.join(import.meta.dirname, '..', '..', '..');
export const secretKey = 'sb_secret_worker_test';

type Runtime = 'node' | 'deno' | 'bun';

/** The runtimes on which workers are tested: Bun only where BUN_BINARY names its program, since a clean clone has none. */
export const runtimes: Runtime[] = process.env.BUN_BINARY ? ['node', 'deno', 'bun'] : ['node', 'deno'];

/** The functions of an engine's database over HTTP, and a gate at which handlers wait. */
export class WorkerSite {
  /** The calls so far, with their answers. */
  readonly calls: { name: string; answer: Record<string, unknown> }[] = [];
  /** The handlers that have come to the gate, by the row. */
  readonly arrived: string[] = [];
  /** The handlers that wait, by the row. */
  private readonly waiting = new Map<string, ServerResponse>();
  private isOpen = false;
  private readonly sessions: pg.Client[] = [];
  private readonly server = createServer();
  url = '';

  constructor(private readonly engine: Engine) {}

  async start(): Promise<this> {
    this.server.on('request', async (request, response) => {
      const { url = '' } = request;
      if (url.startsWith('/gate/')) return this.arrive(url.slice('/gate/'.length), response);
      let body = '';
      for await (const chunk of request) body += chunk;
      const name = url.split('/').at(-1) ?? '';
      const { data, error, status } = await this.call(name, JSON.parse(body || '{}'));
      this.calls.push({ name, answer: (data ?? {}) as Record<string, unknown> });
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(error ?? data));
    });
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    onTestFinished(() => {
      this.server.closeAllConnections();
      this.server.close();
    });
    return this;
  }

  private async call(name: string, args: Record<string, unknown>) {
    const session = this.sessions.pop() ?? (await this.engine.database.connect('service_role'));
    const answer = await databaseRpc(session)(name, args, AbortSignal.timeout(10_000));
    this.sessions.push(session);
    return answer;
  }

  private arrive(row: string, response: ServerResponse): void {
    this.arrived.push(row);
    if (this.isOpen) {
      response.end();
      return;
    }
    this.waiting.set(row, response);
    response.on('close', () => this.waiting.get(row) === response && this.waiting.delete(row));
  }

  /** Resolves to the rows at the gate once there are so many. */
  async atGate(count: number): Promise<string[]> {
    await until(() => this.waiting.size === count, 30_000);
    return [...this.waiting.keys()].sort();
  }

  /** Lets all handlers end, those to come as well. */
  open(): void {
    this.isOpen = true;
    for (const response of this.waiting.values()) response.end();
  }

  /** Lets the handler of one row go on. */
  pass(row: string): void {
    this.waiting.get(row)?.end();
    this.waiting.delete(row);
  }

  /** Starts a worker by one of the runtimes. */
  async work(
    by: Runtime = 'node',
    env: Record<string, string> = {},
    main = 'tests/support/runtime/work-main.ts',
  ): Promise<ChildProcess> {
    if (by === 'node') return this.spawn(process.execPath, [await bundledProgram(main)], env);
    if (by === 'bun') return this.spawn(process.env.BUN_BINARY ?? 'bun', [main], env);
    const config = path.join(root, 'supabase/functions/deno.json');
    const deno = ['run', '--allow-all', '--no-lock', '--node-modules-dir=manual', '--config', config, main];
    return this.spawn(denoBinary(), deno, env);
  }

  /** Starts a program with the environment of a worker. */
  spawn(command: string, args: string[], env: Record<string, string> = {}): ChildProcess {
    const given = { SUPABASE_URL: this.url, SUPABASE_SECRET_KEY: secretKey, GATE_URL: this.url, ...env };
    const { PATH, HOME } = process.env;
    const worker = spawn(command, args, {
      cwd: root,
      env: { PATH, HOME, ...given },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    worker.stdout?.resume();
    worker.stderr?.resume();
    onTestFinished(() => void worker.kill('SIGKILL'));
    return worker;
  }
}

/** Resolves to the exit code of a worker, or to the signal that ended it. */
export async function ended(worker: ChildProcess): Promise<number | string> {
  if (worker.exitCode === null && worker.signalCode === null) await once(worker, 'exit');
  return worker.signalCode ?? worker.exitCode ?? '';
}
