import { CommandError } from '../command-error.ts';

const ANSWER_TIME_MS = 15_000;

/** Sends a request. Throws a CommandError (exit code 4) where nobody answers. */
export async function askServer(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, { ...init, signal: AbortSignal.timeout(ANSWER_TIME_MS) });
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    throw new CommandError(`${address} cannot be reached (${cause?.code ?? message}): correct the address.`, 4);
  }
}
