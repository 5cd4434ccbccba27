import {
  classify,
  MisconfiguredError,
  PermanentError,
  RetriableError,
  StageError,
  UnavailableError,
} from '../../_millrace/errors.ts';
import type { Problem } from './pass.ts';

/** What is wrong with one of a source's documents, as its owner reads it. */
export function described({ code, message }: StageError, address: string): Problem {
  return { code, message: `${message} (${address})` };
}

/** What failed at an address, sorted, with what to do about it. */
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
  // Deno's own words for a connection that ends in the midst of a body are in none of the known errors.
  if (code === 'connection_lost' || /body from connection|terminated/i.test(detail ?? '')) {
    return new RetriableError(
      'connection_lost',
      `The connection to ${host} failed: it is asked again.`,
      undefined,
      detail,
    );
  }
  return permanent
    ? new PermanentError(code, message, undefined, detail)
    : new RetriableError(code, message, undefined, detail);
}

/** Whether it is the project that failed, and not the source. */
export function isOwnFailure(error: StageError): boolean {
  return error instanceof MisconfiguredError || error instanceof UnavailableError || error.code === 'unexpected_error';
}
