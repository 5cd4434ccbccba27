import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Fetched } from '../http/fetch-url.ts';
import { JobError } from '../http/job-error.ts';
import { type ReadOutcome, type ReadPage, readPage } from './read-page.ts';

const memoryMb = 512;
const smallBytes = 32 * 1024;
const smallTags = 150;

/**
 * Reads pages in a thread of its own, one after the other: a page may be large or built to be slow,
 * and whatever else lives in this process must not wait for it. The thread takes a second to start,
 * so small and plain pages are read at once.
 */
export class PageReader {
  readonly #limitMs: number;
  #worker: Promise<Worker> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Reads a page as `readPage` does. A page that takes too long or too much memory has `no_content`. */
  async read(page: Fetched): Promise<ReadPage> {
    const read = isSmall(page.body) ? readPage(page) : await this.#readInTurn(page);
    return { ...read, doubts: [...(page.doubts ?? []), ...read.doubts] };
  }

  /** Ends the thread. */
  async stop(): Promise<void> {
    await (await this.#worker?.catch(() => undefined))?.terminate();
  }

  #readInTurn(page: Fetched): Promise<ReadPage> {
    const reading = this.#last.then(() => this.#readNow(page));
    this.#last = reading.catch(() => {});
    return reading;
  }

  async #readNow({ url, contentType, body }: Fetched): Promise<ReadPage> {
    this.#worker ??= startWorker();
    const worker = await this.#worker;
    worker.postMessage({ href: url.href, contentType, body });
    const outcome = await answerOf(worker, this.#limitMs);
    if (outcome && 'page' in outcome) return outcome.page;
    if (!outcome) {
      this.#worker = undefined;
      await worker.terminate();
    }
    const { code, message } = outcome?.fault ?? { code: 'no_content', message: '' };
    throw new JobError(code, message || `${url.href}: its HTML is too tangled to be read`);
  }
}

function isSmall(body: Buffer): boolean {
  let tags = 0;
  for (let at = body.indexOf('<'); at >= 0 && tags <= smallTags; at = body.indexOf('<', at + 1)) tags++;
  return body.length <= smallBytes && tags <= smallTags;
}

async function answerOf(worker: Worker, limitMs: number): Promise<ReadOutcome | undefined> {
  const signal = AbortSignal.timeout(limitMs);
  return once(worker, 'message', { signal }).then(
    ([outcome]) => outcome,
    () => undefined,
  );
}

// Resolves once the thread has loaded what it needs, so that this is not counted as time spent on a page.
async function startWorker(): Promise<Worker> {
  const worker = new Worker(new URL('./page-reader-thread.mjs', import.meta.url), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
  });
  await once(worker, 'message');
  // An error is met where a page is waited for; between pages there is nobody to tell.
  worker.on('error', () => {});
  worker.unref();
  return worker;
}
