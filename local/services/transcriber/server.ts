// A stand-in for Deepgram's pre-recorded API, for machines without it. It speaks the protocol and cannot hear: a file's
// transcript is what its own metadata says, spread evenly over its real length.
import { createHash, randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { tokenMatches } from '../http/auth-token.ts';
import { deliverCallback } from '../http/deliver-callback.ts';
import { type FetchDocumentOptions, fetchDocument } from '../http/fetch-document.ts';
import { readAllowedHosts } from '../http/guarded-agent.ts';
import { JobError } from '../http/job-error.ts';
import { listen, type Service } from '../http/listen.ts';
import { ApiError } from './api-error.ts';
import { readListenQuery } from './listen-query.ts';
import { readRecording } from './read-recording.ts';
import { transcriptionOf } from './transcription.ts';

export interface TranscriberOptions {
  /** Reads DEEPGRAM_API_KEY and DEEPGRAM_ALLOW_HOSTS, once. */
  env: Record<string, string | undefined>;
  port?: number;
  /** Bytes of a recording. */
  maxBytes?: number;
  /** Pauses between the tries of a callback; Deepgram's unless given. */
  callbackDelaysMs?: number[];
}

const deepgramDelaysMs = Array<number>(10).fill(30_000);
const headers = { 'user-agent': 'MillraceTranscriber/1.0', accept: 'audio/*,video/*' };

/**
 * Starts the transcriber on the loopback interface. Resolves to its base URL and the way to stop it; rejects when a
 * setting cannot be used or the port is taken.
 */
export async function startTranscriber(options: TranscriberOptions): Promise<Service> {
  const { env, port, maxBytes = 64 * 1024 * 1024, callbackDelaysMs = deepgramDelaysMs } = options;
  const allowedHosts = readAllowedHosts('DEEPGRAM_ALLOW_HOSTS', env);
  const ending = new AbortController();
  // Every request and callback under way listens for the end.
  setMaxListeners(0, ending.signal);
  const app = transcriberApp({
    key: env.DEEPGRAM_API_KEY,
    fetching: { allowedHosts, timeoutMs: 30_000, maxBytes, headers },
    callbackDelaysMs,
    stop: ending.signal,
  });
  const service = await listen(app.fetch, port);
  return {
    url: service.url,
    stop: () => {
      ending.abort();
      return service.stop();
    },
  };
}

interface App {
  key: string | undefined;
  fetching: FetchDocumentOptions;
  callbackDelaysMs: number[];
  stop: AbortSignal;
}

function transcriberApp({ key, fetching, callbackDelaysMs, stop }: App): Hono {
  const app = new Hono();
  const { maxBytes } = fetching;
  const tooLarge = () => new ApiError(413, 'Payload Too Large', `The recording has more than ${maxBytes} bytes`);
  app.onError((error, c) => {
    if (!(error instanceof ApiError)) throw error;
    return c.json(error.toBody(randomUUID()), error.status);
  });
  app.notFound(() => {
    throw new ApiError(404, 'Not Found', 'Nothing is served here: use POST /v1/listen');
  });
  const onError = () => {
    throw tooLarge();
  };
  app.post('/v1/listen', bodyLimit({ maxSize: maxBytes, onError }), async (c) => {
    if (!tokenMatches(c.req.header('authorization'), key, 'Token')) {
      throw new ApiError(401, 'INVALID_AUTH', 'Invalid credentials.');
    }
    const query = readListenQuery(new URL(c.req.url).searchParams);
    const bytes = await readSound(c, fetching, stop);
    const recording = await readRecording(bytes);
    const requestId = randomUUID();
    const transcription = transcriptionOf(recording, bytes, query, requestId);
    if (query.callback === undefined) return c.json(transcription);
    const tokenId = createHash('sha256')
      .update(key ?? '')
      .digest('hex')
      .slice(0, 32);
    const callback = {
      url: query.callback,
      body: JSON.stringify(transcription),
      headers: () => ({ 'dg-token': tokenId }),
    };
    // In a later turn, so that the request is answered first.
    setImmediate(() => void deliverCallback(callback, callbackDelaysMs, stop));
    return c.json({ request_id: requestId });
  });
  return app;
}

/** Resolves to the recording: the body itself, or what lies at the URL in a JSON body. Rejects with an ApiError. */
async function readSound(c: Context, fetching: FetchDocumentOptions, stop: AbortSignal): Promise<Uint8Array> {
  if (!/^application\/json\b/i.test(c.req.header('content-type') ?? ''))
    return new Uint8Array(await c.req.arrayBuffer());
  const body = (await c.req.json().catch(() => null)) as { url?: unknown } | null;
  if (typeof body?.url !== 'string') {
    const message = 'Content-type was application/json, but we could not process the JSON payload.';
    throw new ApiError(400, 'Bad Request', `${message} Send {"url": …}`);
  }
  try {
    return await fetchDocument(body.url, fetching, stop);
  } catch (error) {
    if (!(error instanceof JobError)) throw error;
    const message = `The remote server hosting the media failed to return valid data: ${error.message}`;
    throw new ApiError(400, 'REMOTE_CONTENT_ERROR', message);
  }
}
