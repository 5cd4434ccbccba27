import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { sendHtml } from '../support/examples/test-site.ts';
import { LeadsStack } from '../support/stack/stack.ts';

let leads: LeadsStack;
beforeAll(async () => {
  leads = await LeadsStack.start({
    proxies: true,
    env: { SCRAPER_ALLOW_HOSTS: '127.0.0.1' },
    scraperLimits: { pageMs: 3000, readMs: 30_000 },
  });
});
afterEach(() => leads.expectSound());
afterAll(() => leads.stop());

async function refusedUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}/`;
}

/** A page that goes wrong in some way the first time and is well from then on; `reached` counts its visits. */
function wellTheSecondTime(wrong: (response: ServerResponse) => void): { url: string; reached: () => number } {
  let visits = 0;
  const url = leads.site.add((_, response) => {
    visits += 1;
    if (visits === 1) wrong(response);
    else sendHtml(response, ['Bread from rye', 'We bake at night.']);
  });
  return { url, reached: () => visits };
}

test('a lead that cannot succeed fails at once, with the reason and the remedy on the row', async () => {
  const { samples, site } = leads;
  const hopeless: [string, string, RegExp][] = [
    ['http://nobody.invalid/', 'dns_not_found', /does not exist/],
    [await refusedUrl(), 'connection_refused', /refuses connections/],
    [`${samples.url}/faults/404`, 'not_found', /status 404/],
    [`${samples.url}/faults/410`, 'not_found', /status 410/],
    [`${samples.url}/faults/403`, 'forbidden', /status 403/],
    [`${samples.url}/faults/empty`, 'no_content', /no readable text/],
    [`${samples.url}/faults/huge`, 'too_large', /larger than the limit/],
    [`${samples.url}/faults/image`, 'unsupported_type', /image\/png/],
    [`${samples.url}/faults/redirect-private`, 'blocked_address', /SCRAPER_ALLOW_HOSTS/],
    [site.url.replace('127.0.0.1', 'localhost'), 'blocked_address', /localhost.*127\.0\.0\.1|localhost.*::1/],
    ['not a url', 'invalid_url', /"not a url".*https:\/\/example\.com.*queued again/],
    ['', 'invalid_url', /https:\/\/example\.com/],
    ['ftp://example.com/', 'invalid_url', /ftp:/],
  ];
  const ids = await leads.queued(...hopeless.map(([url]) => url));
  await leads.finished(ids);
  for (const [n, [url, code, reason]] of hopeless.entries()) {
    expect(await leads.attempts(ids[n]), url).toEqual([`scrape 1 failed ${code}`]);
    expect(await leads.lead(ids[n]), url).toMatchObject({
      scrape_status: 'failed',
      scrape_error: expect.stringMatching(reason),
      scrape_retry_count: 0,
      scrape_result: null,
      intel_status: 'pending',
    });
  }
  expect(
    await leads.value(
      'select count(*)::int from millrace.dead_letters where run_id in (select r.id from millrace.runs r where r.entity_id = any ($1))',
      [ids],
    ),
  ).toBe(hopeless.length);
});

test('a URL corrected after it failed goes through when the stage is queued again', async () => {
  const [id = ''] = await leads.queued('htp:/typo');
  await leads.finished([id]);
  const url = leads.site.add(['Saddles and reins']);
  await leads.rows(`update public.leads set company_url = $2, scrape_status = 'queued' where id = $1`, [id, url]);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
});

test('too many requests: the stage waits as long as the site asked for, shows its count, and goes on', async () => {
  const page = wellTheSecondTime((response) => response.writeHead(429, { 'retry-after': '120' }).end());
  const [id = ''] = await leads.queued(page.url);
  await leads.until('it waits for another try', async () => (await leads.lead(id)).scrape_retry_count === 1);
  expect(await leads.lead(id)).toMatchObject({
    scrape_status: 'queued',
    scrape_error: expect.stringMatching(/status 429/),
  });
  const pause = await leads.value<number>(
    `select extract(epoch from max(a.queue_at) - max(a.created_at))::float8 from millrace.attempts a
     join millrace.runs r on r.id = a.run_id where r.entity_id = $1 and a.state = 'queued'`,
    [id],
  );
  expect(pause).toBeGreaterThanOrEqual(119.9);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  expect((await leads.attempts(id)).slice(0, 2)).toEqual(['scrape 1 failed rate_limited', 'scrape 2 completed']);
});

test.each<[string, string, (response: ServerResponse) => void]>([
  ['an error of the server', 'server_error', (response) => response.writeHead(500).end()],
  ['a connection that breaks', 'connection_lost', (response) => response.destroy()],
  // Never answered: the scraper gives up.
  ['a page that takes too long', 'timeout', () => {}],
])('%s is tried again', async (_, code, wrong) => {
  const page = wellTheSecondTime(wrong);
  const [id = ''] = await leads.queued(page.url);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  expect((await leads.attempts(id)).slice(0, 2)).toEqual([`scrape 1 failed ${code}`, 'scrape 2 completed']);
  expect(await leads.lead(id)).toMatchObject({ scrape_retry_count: 1, scrape_error: null });
});

test('a lead that goes on failing is given up after four attempts, and replayed when a person asks for it', async () => {
  let isDown = true;
  const url = leads.site.add((_, response) =>
    isDown ? response.writeHead(503).end() : sendHtml(response, ['Cheese from the alps']),
  );
  const [id = ''] = await leads.queued(url);
  await leads.finished([id]);
  expect(await leads.attempts(id)).toEqual([1, 2, 3, 4].map((number) => `scrape ${number} failed server_error`));
  expect(await leads.lead(id)).toMatchObject({ scrape_status: 'failed', scrape_retry_count: 3 });
  isDown = false;
  await leads.rows('select millrace.retry($1)', [(await leads.run(id)).id]);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
});

test('a page in another charset is read as it was written', async () => {
  const [id = ''] = await leads.queued(`${leads.samples.url}/faults/charset`);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  expect(JSON.stringify((await leads.lead(id)).scrape_result)).toContain('Le café coûte 3 £ à Mölln.');
});

test('a result above the limit fails at once, with the way out', async () => {
  // Long paragraphs, since a page takes long to read by how many it has.
  const planks = Array.from({ length: 1000 }, (_, n) =>
    `Plank number ${n} of sound oak, planed on both sides. `.repeat(22),
  );
  const [id = ''] = await leads.queued(leads.site.add(planks));
  await leads.finished([id]);
  expect(await leads.attempts(id)).toEqual(['scrape 1 failed result_too_large']);
  expect(await leads.lead(id)).toMatchObject({
    scrape_status: 'failed',
    scrape_error: expect.stringMatching(/has \d+ bytes.* 1048576.*Storage.*location/),
    scrape_result: null,
  });
});
