import { fetchUrl, readWebUrl } from './fetch-url.ts';
import { type AllowedHosts, guardedAgent, systemResolve } from './guarded-agent.ts';
import { JobError } from './job-error.ts';

export interface FetchDocumentOptions {
  allowedHosts: AllowedHosts;
  timeoutMs: number;
  maxBytes: number;
  headers: Record<string, string>;
}

/** The bytes of one document on the public internet or an allowed host. Rejects with a JobError, until `stop` aborts. */
export async function fetchDocument(
  text: string,
  { allowedHosts, ...options }: FetchDocumentOptions,
  stop: AbortSignal,
): Promise<Uint8Array> {
  const url = readWebUrl(text);
  const agent = guardedAgent(allowedHosts, systemResolve);
  try {
    return (await fetchUrl(url, { agent, signal: stop, ...options })).body;
  } catch (error) {
    if (!(error instanceof JobError) || url.search === '') throw error;
    // The query of a signed URL is a secret.
    throw new JobError(error.code, error.message.replaceAll(url.search, ''), error.retryAfterMs);
  } finally {
    await agent.destroy();
  }
}
