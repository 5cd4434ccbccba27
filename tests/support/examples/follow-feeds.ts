import { pollSource, type Source } from '../../../supabase/functions/_articles/feeds/poll-source.ts';
import type { Poller, PollLimits } from '../../../supabase/functions/_articles/feeds/turn.ts';
import { type Resolve, systemResolve } from '../../../supabase/functions/_millrace/public-hosts.ts';
import { type Reply, startServer } from '../http-server.ts';

/** A site whose files a test writes, by path; a file may be an answer of its own. */
export async function startSite(files: Record<string, string | Buffer | Reply | ((asked: Headers) => Reply)>) {
  const server = await startServer(({ path, headers }) => {
    const file = files[path];
    if (file === undefined) return { status: 404 };
    if (typeof file === 'function') return file(new Headers(headers as Record<string, string>));
    if (typeof file === 'string' || Buffer.isBuffer(file)) return { bytes: Buffer.from(file) };
    return file;
  });
  const asked = () => server.received.splice(0).map(({ path }) => path);
  return { url: server.url, files, received: server.received, asked };
}

interface Polling {
  limits?: Partial<PollLimits>;
  allow?: string;
  resolve?: Resolve;
  timeoutMs?: number;
  now?: Date;
  unknown?: Poller['unknown'];
}

/** A source that is polled again and again: it keeps what a poll gave it, and the queue what it found. */
export function follow(address: string) {
  const source: Source = { address, etag: null, last_modified: null, cursor: null };
  const queue = new Set<string>();
  return {
    source,
    queue,
    async poll({
      limits,
      allow = new URL(address).host,
      resolve = systemResolve,
      timeoutMs = 5000,
      now,
      unknown = async (urls) => urls.filter((url) => !queue.has(url)),
    }: Polling = {}) {
      const poller: Poller = {
        access: { allowed: new Set([allow]), resolve, signal: new AbortController().signal, timeoutMs },
        limits: { newUrls: 1000, entries: 10_000, bytes: 1_000_000, documents: 20, ms: 20_000, ...limits },
        unknown,
        now: () => now ?? new Date(),
      };
      const poll = await pollSource(source, poller);
      for (const { url } of poll.urls) queue.add(url);
      if (poll.state) Object.assign(source, JSON.parse(JSON.stringify(poll.state)));
      return poll;
    },
  };
}
