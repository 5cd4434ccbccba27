import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { within } from '../scraper/deadline.ts';
import { JobError } from '../scraper/job-error.ts';
import type { PageAnswer, PageQuestion } from './page-reader-worker.ts';
import type { PageText } from './page-text.ts';

const memoryMb = 512;

/** Threads that draw and read pages: one for each reading under way, started when it is first needed. */
export class PageReaders {
  readonly #limitMs: number;
  readonly #idle: Worker[] = [];
  readonly #all = new Set<Worker>();

  /** `limitMs` is the longest that reading one page may take. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Reads a page of a document. Rejects with a JobError. */
  async read(question: PageQuestion, stop: AbortSignal): Promise<PageText> {
    const reader = this.#idle.pop() ?? (await this.#start());
    const answer = await this.#ask(reader, question, stop);
    this.#idle.push(reader);
    if ('read' in answer) return answer.read;
    throw new JobError(answer.fault.code, answer.fault.message);
  }

  /** Ends the threads. */
  async stop(): Promise<void> {
    await Promise.all([...this.#all].map((reader) => reader.terminate()));
  }

  async #ask(reader: Worker, question: PageQuestion, stop: AbortSignal): Promise<PageAnswer> {
    reader.postMessage(question);
    try {
      return await within(this.#limitMs, stop, async (signal) => {
        const [answer] = await once(reader, 'message', { signal });
        return answer;
      });
    } catch (error) {
      // Whatever it is busy with, the next page needs a new one.
      this.#all.delete(reader);
      await reader.terminate();
      if ((error as Error).name === 'TimeoutError') {
        throw new JobError('timeout', `the page could not be read within ${this.#limitMs} ms`);
      }
      throw new JobError('too_large', `the page is too much to be read: ${(error as Error).message}`);
    }
  }

  // Resolves once the thread has loaded what it needs, so that this is not counted as time spent on a page.
  async #start(): Promise<Worker> {
    const reader = new Worker(new URL('./page-reader-thread.mjs', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    });
    this.#all.add(reader);
    await once(reader, 'message').catch((error) => {
      throw new JobError('server_error', `pages cannot be read here: ${error.message}`);
    });
    // An error is met where a page is waited for; between pages there is nobody to tell.
    reader.on('error', () => {});
    reader.unref();
    return reader;
  }
}
