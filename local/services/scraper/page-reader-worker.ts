import { parentPort } from 'node:worker_threads';
import { JobError } from '../http/job-error.ts';
import { type ReadOutcome, readPage } from './read-page.ts';

parentPort?.on('message', ({ href, contentType, body }: { href: string; contentType: string; body: Uint8Array }) => {
  parentPort?.postMessage(outcomeOf(href, contentType, body));
});
parentPort?.postMessage('ready');

function outcomeOf(href: string, contentType: string, body: Uint8Array): ReadOutcome {
  try {
    return { page: readPage({ url: new URL(href), contentType, body: Buffer.from(body) }) };
  } catch (error) {
    // Of an error only its data gets through to the other thread. Any other than ours comes of a page too tangled to parse.
    const ours = error instanceof JobError;
    return { fault: ours ? { code: error.code, message: error.message } : { code: 'no_content', message: '' } };
  }
}
