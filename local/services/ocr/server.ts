import { fetchDocument } from '../http/fetch-document.ts';
import { readAllowedHosts } from '../http/guarded-agent.ts';
import { startJobService } from '../http/job-service.ts';
import type { Service } from '../http/listen.ts';
import { ocrRequest } from './ocr-request.ts';
import { PageReaders } from './page-readers.ts';

/** Bounds of one job; bytes and milliseconds. */
export interface OcrLimits {
  documentBytes: number;
  fetchMs: number;
  /** Milliseconds for drawing and reading one page. */
  readMs: number;
}

export interface OcrOptions {
  /** Reads OCR_AUTH_TOKEN, WEBHOOK_SECRET and OCR_ALLOW_HOSTS, once. */
  env: Record<string, string | undefined>;
  port?: number;
  limits?: Partial<OcrLimits>;
  /** Pauses between the tries of a callback. */
  callbackDelaysMs?: number[];
}

const defaultLimits: OcrLimits = { documentBytes: 64 * 1024 * 1024, fetchMs: 30_000, readMs: 90_000 };
const headers = { 'user-agent': 'MillraceOcr/1.0', accept: 'application/pdf,image/png,image/jpeg' };

/**
 * Starts the OCR service on the loopback interface. Resolves to its base URL and the way to stop it;
 * rejects when a setting cannot be used or the port is taken.
 */
export async function startOcr({ env, port, callbackDelaysMs, ...options }: OcrOptions): Promise<Service> {
  const allowedHosts = readAllowedHosts('OCR_ALLOW_HOSTS', env);
  const limits = { ...defaultLimits, ...options.limits };
  const fetching = { allowedHosts, timeoutMs: limits.fetchMs, maxBytes: limits.documentBytes, headers };
  const readers = new PageReaders(limits.readMs);
  const service = await startJobService({
    name: 'OCR service',
    request: ocrRequest,
    run: async ({ document_url: url, page }, stop) =>
      readers.read({ bytes: await fetchDocument(url, fetching, stop), page }, stop),
    // A signed URL bears another signature when it is made again, as after a crash.
    identity: (request) => ({ ...request, document_url: withoutQuery(request.document_url) }),
    // Reading takes a whole processor.
    concurrency: 2,
    env,
    tokenSetting: 'OCR_AUTH_TOKEN',
    port,
    callbackDelaysMs,
  });
  return {
    url: service.url,
    async stop() {
      await Promise.all([service.stop(), readers.stop()]);
    },
  };
}

function withoutQuery(text: string): string {
  const url = new URL(text);
  url.search = '';
  return url.href;
}
