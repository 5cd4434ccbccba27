import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { freePort } from '../../../local/platform/free-port.ts';

const program = path.join(import.meta.dirname, 'scraper-main.ts');

/** The local scraper in a process of its own. */
export class ScraperProcess {
  readonly url: string;
  readonly #env: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;

  private constructor(port: number, env: Record<string, string>) {
    this.url = `http://127.0.0.1:${port}`;
    this.#env = { ...process.env, ...env, PORT: String(port) };
  }

  static async start(env: Record<string, string>): Promise<ScraperProcess> {
    const started = new ScraperProcess(await freePort(), env);
    await started.restart();
    return started;
  }

  /** Ends it at once, as `kill -9` does: what it had in work and in memory is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Starts it anew at the same address. */
  async restart(): Promise<void> {
    await this.kill();
    const child = spawn(process.execPath, ['--import', 'tsx', program], {
      env: this.#env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    await once(child.stdout, 'data');
  }
}
