import { parentPort } from 'node:worker_threads';
import { toJobError } from '../http/job-error.ts';
import { type ReadOutcome, readPage } from './read-page.ts';

parentPort?.on('message', ({ href, contentType, body }: { href: string; contentType: string; body: Uint8Array }) => {
  parentPort?.postMessage(outcomeOf(href, contentType, body));
});
parentPort?.postMessage('ready');

function outcomeOf(href: string, contentType: string, body: Uint8Array): ReadOutcome {
  try {
    return { page: readPage({ url: new URL(href), contentType, body: Buffer.from(body) }) };
  } catch (error) {
    // Of an error only its data gets through to the other thread.
    const { code, message } = toJobError(error, new URL(href));
    return { fault: { code, message } };
  }
}
