import { type AddressInfo, createServer } from 'node:net';
import type { JobView } from '../../local/services/http/jobs.ts';
import type { ScrapedPage } from '../../local/services/scraper/crawl-site.ts';
import { until } from '../support/until.ts';

/** A port of the loopback interface on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Posts a JSON body; returns the status and the parsed answer. */
export async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: each test states what it expects of the answer.
  return { status: response.status, json: (await response.json()) as any };
}

/** Submits a job and waits for its end. */
export async function scrape(
  scraperUrl: string,
  body: { url: string } & Record<string, unknown>,
): Promise<JobView<{ pages: ScrapedPage[] }>> {
  const { json } = await post(`${scraperUrl}/jobs`, body);
  return until(async () => {
    const view = (await (await fetch(`${scraperUrl}/jobs/${json.job_id}`)).json()) as JobView<{ pages: ScrapedPage[] }>;
    return view.status === 'completed' || view.status === 'failed' ? view : undefined;
  }, 20_000);
}
