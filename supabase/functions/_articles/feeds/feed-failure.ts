import {
  classify,
  excerpt,
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  StageError,
  storableText,
  UnavailableError,
} from '../../_millrace/errors.ts';
import type { Problem } from './pass.ts';

/** The problem with one of a source's documents, as its owner reads it. */
export function described({ code, message }: StageError, address: string): Problem {
  // The message may quote what a site wrote, such as a NUL.
  return { code, message: storableText(`${message} (${address})`) };
}

/**
 * Sorts a failure to fetch or read a document of a source, and says what to do about it. An unforeseen exception is the
 * document's fault too: another document is read all the same, and this one again with the next poll.
 */
export function failureOf(error: unknown, address: string): StageError {
  if (error instanceof StageError) return error;
  const { code, message, detail, permanent } = classify(error);
  const { host } = new URL(address);
  if (code === 'dns_not_found') {
    return new PermanentError(code, `There is no host ${host}: correct the address.`, undefined, detail);
  }
  if (code === 'connection_refused') {
    const said = `${host} refuses the connection: correct the address, or wait until the site is up.`;
    return new PermanentError(code, said, undefined, detail);
  }
  if (code === 'timeout') {
    return new RetriableError(code, `${host} took too long to answer: it is asked again.`, undefined, detail);
  }
  if (isPackedWrong(error)) {
    const said = `${host} says that its answer is packed (Content-Encoding), and it is not: tell the site’s owner.`;
    return new PermanentError('damaged_feed', said, undefined, detail);
  }
  // The words of Deno and Node for a body that ends in its midst, packed or not, are in none of the known errors.
  const ending = /body from connection|terminated|unexpected end of file/i;
  if (code === 'connection_lost' || ending.test(`${messageOf(error)} ${detail ?? ''}`)) {
    return new RetriableError(
      'connection_lost',
      `The connection to ${host} failed: it is asked again.`,
      undefined,
      detail,
    );
  }
  if (code === 'unexpected_error') {
    const said = `What ${host} gives cannot be read (${excerpt(messageOf(error), 200)}): open it in a browser, and tell the site’s owner.`;
    return new PermanentError('unreadable_feed', said, undefined, detail);
  }
  return permanent
    ? new PermanentError(code, message, undefined, detail)
    : new RetriableError(code, message, undefined, detail);
}

/** Whether a body is not packed as its header says, in the words of Deno or of Node. */
function isPackedWrong(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code, message } = cause as Error & { code?: unknown };
    if (code === 'Z_DATA_ERROR' || /invalid gzip header|corrupt deflate stream|brotli/i.test(message)) return true;
  }
  return false;
}

/** Whether it is the project that failed, and not the source. */
export function isOwnFailure(error: StageError): boolean {
  return error instanceof MisconfiguredError || error instanceof UnavailableError;
}
