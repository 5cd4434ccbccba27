import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { denoBinary } from '../../local/platform/binaries.ts';

const root = path.join(import.meta.dirname, '..', '..');
const config = path.join(root, 'supabase', 'functions', 'deno.json');
const program = path.join(import.meta.dirname, 'functions', 'sign-main.ts');
const run = ['run', '--allow-all', '--no-lock', '--node-modules-dir=manual', '--config', config, program];

/** A worker as a host keeps one: a process that is started again whenever it has ended. */
export class OwnWorker {
  /** How often the process was started. */
  starts = 0;
  #process: ChildProcess | undefined;
  #isOver = false;

  /** Starts the worker that signs parcels. */
  constructor(private readonly env: Record<string, string>) {
    this.#spawn();
  }

  #spawn(): void {
    this.starts += 1;
    const { PATH, HOME } = process.env;
    const worker = spawn(denoBinary(), run, { cwd: root, env: { PATH, HOME, ...this.env }, stdio: 'ignore' });
    this.#process = worker;
    worker.once('exit', async () => {
      await pause(this.#isOver ? 0 : 300);
      if (!this.#isOver) this.#spawn();
    });
  }

  /** Sends the signal, and waits until the process has ended: a handler may go on after SIGTERM. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const worker = this.#process;
    if (!worker || worker.exitCode !== null || worker.signalCode !== null) return;
    worker.kill(signal);
    await Promise.race([once(worker, 'exit'), pause(signal === 'SIGTERM' ? 2_000 : 500)]);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.end('SIGKILL');
  }
}
