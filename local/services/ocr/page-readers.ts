import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { within } from '../../platform/deadline.ts';
import { JobError } from '../http/job-error.ts';
import type { PageAnswer, PageQuestion } from './answer-questions.ts';
import type { PageText } from './page-text.ts';

const program = path.join(import.meta.dirname, 'page-reader-main.mjs');
const memoryMb = 512;

/**
 * Processes that draw and read pages: one for each reading under way, started when it is first needed. A document may
 * be built to be slow, to take all memory or to bring down what decodes its images.
 */
export class PageReaders {
  readonly #limitMs: number;
  readonly #idle = new Set<ChildProcess>();
  readonly #all = new Set<ChildProcess>();

  /** `limitMs` is the longest that reading one page may take. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Reads a page of a document. Rejects with a JobError. */
  async read(question: PageQuestion, stop: AbortSignal): Promise<PageText> {
    const [idle] = this.#idle;
    if (idle) this.#idle.delete(idle);
    const reader = idle ?? (await this.#start(stop));
    const answer = await this.#ask(reader, question, stop);
    this.#idle.add(reader);
    if ('read' in answer) return answer.read;
    throw new JobError(answer.fault.code, answer.fault.message);
  }

  /** Ends the processes. */
  async stop(): Promise<void> {
    await Promise.all([...this.#all].map(end));
  }

  async #ask(reader: ChildProcess, question: PageQuestion, stop: AbortSignal): Promise<PageAnswer> {
    try {
      return await within(this.#limitMs, stop, (signal) => {
        const answer = messageOf<PageAnswer>(reader, signal);
        reader.send(question);
        return answer;
      });
    } catch (error) {
      // The process may still be busy with this page: the next page needs a new one.
      await end(reader);
      if ((error as Error).name === 'TimeoutError') {
        throw new JobError('timeout', `the page could not be read within ${this.#limitMs} ms`);
      }
      throw new JobError('server_error', `reading the page was cut short: ${(error as Error).message}`);
    }
  }

  // Resolves once the program has loaded what it needs, so that this is not counted as time spent on a page.
  async #start(stop: AbortSignal): Promise<ChildProcess> {
    const reader = fork(program, { serialization: 'advanced', execArgv: [`--max-old-space-size=${memoryMb}`] });
    this.#all.add(reader);
    reader.once('close', () => {
      this.#all.delete(reader);
      this.#idle.delete(reader);
    });
    // An error is met where a page is waited for; between pages there is nobody to tell.
    reader.on('error', () => {});
    await messageOf(reader, stop).catch((error) => {
      throw new JobError('server_error', `pages cannot be read here: ${error.message}`);
    });
    reader.unref();
    reader.channel?.unref();
    return reader;
  }
}

/** Resolves to the next message of a process; rejects when it ends before that. */
async function messageOf<T>(reader: ChildProcess, signal: AbortSignal): Promise<T> {
  const settled = new AbortController();
  const ended = once(reader, 'close', { signal: settled.signal }).then(([code, killedBy]) => {
    throw new Error(killedBy ? `ended by ${killedBy}` : `exit code ${code}`);
  });
  try {
    const [message] = await Promise.race([once(reader, 'message', { signal }), ended]);
    return message;
  } finally {
    settled.abort();
    ended.catch(() => {});
  }
}

async function end(reader: ChildProcess): Promise<void> {
  if (reader.exitCode !== null || reader.signalCode !== null) return;
  const closed = once(reader, 'close');
  reader.kill('SIGKILL');
  await closed;
}
