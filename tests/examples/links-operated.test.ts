// Links as those who run them see them, on the whole stack: what overload does, and what is told of throughput and failures.
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestSite, type TestSite } from '../support/examples/test-site.ts';
import { startServer } from '../support/http-server.ts';
import { jobPage, LinksStack, postPage } from '../support/stack/links-stack.ts';

const patienceMs = 120_000;
const threshold = 300;
let site: TestSite;
let stack: LinksStack;

beforeAll(async () => {
  site = await startTestSite();
  stack = await LinksStack.start(site.url, { ALERT_ALLOW_HOSTS: '127.0.0.1' });
});
afterAll(async () => {
  await stack?.stop();
  await site?.stop();
});

const serve = (html: string, path: string) =>
  site.add((_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(html), path);

/** How many jobs show each word. */
async function jobsByWord(): Promise<Record<string, number>> {
  const rows = await stack.rows<{ word: string; n: number }>(
    `select status as word, count(*)::int as n from public.linkedin_links
     where raw_url like '%/jobs/many-%' group by status`,
  );
  return Object.fromEntries(rows.map(({ word, n }) => [word, n]));
}

/** Lets some time pass, for gates to pass what their limits allow. */
async function halfAMinute(): Promise<void> {
  await stack.advance('30 seconds');
  await stack.sweep();
}

const unfinished = () =>
  stack.value<number>(
    `select count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where s.name = 'scrape_job' and a.state in ('queued', 'started', 'waiting')`,
  );

test('Observability: dashboards show non-zero throughput; alerts fire on synthetic failure.', async () => {
  const receiver = await startServer(() => ({}));
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  await stack.rows(`insert into millrace.alert_channels (name, kind) values ('ops', 'webhook')`);
  await stack.rows(
    `select vault.create_secret($1, 'millrace_channel_ops_address'),
       vault.create_secret($2, 'millrace_channel_ops_secret')`,
    [`${receiver.url}/hook`, secret],
  );
  const told = (): string[] =>
    receiver.received.flatMap(({ body, headers }) => {
      const { data } = new Webhook(secret).verify(body, headers as Record<string, string>) as {
        data: { events: { event: string; rule: string; stage: string; pipeline: string }[] };
      };
      return data.events.map(({ event, rule, stage, pipeline }) => [event, rule, stage, pipeline].join(' '));
    });

  const began = await stack.value<Date>(`select date_trunc('minute', millrace.now())`);
  const ids = [await stack.add(serve(jobPage, '/jobs/1')), await stack.add(serve(postPage, '/posts/1'))];
  for (const id of ids) await stack.reach(id, 'extracted');
  const tick = async () => {
    await stack.advance('1 minute');
    await stack.sweep();
  };
  await tick();
  const stages = ['classify', 'route_job', 'scrape_job', 'route_post', 'scrape_post', 'stage_job', 'stage_post'];
  for (const stage of [...stages, 'extract']) {
    const [row] = await stack.rows(
      `select f.completed::int, (select sum(s.completed)::int
         from millrace.series('links', $1, $2, millrace.now() + interval '1 minute', '1 minute') s) as charted
       from millrace.figures('links', $1, $2) f`,
      [stage, began],
    );
    const completed = ['classify', 'extract'].includes(stage) ? 2 : 1;
    expect({ stage, ...row }).toEqual({ stage, completed, charted: completed });
  }
  expect(await stack.value(`select input_tokens > 0 from millrace.figures('links', 'extract', $1)`, [began])).toBe(
    true,
  );

  await stack.rows(
    `insert into public.linkedin_links (raw_url) select 'no address, row ' || n from generate_series(1, 25) n`,
  );
  const rule = 'errors classify links';
  await stack.until(
    'all of these are dead',
    async () => (await stack.value(`select count(*)::int from public.linkedin_links where status = 'dead'`)) === 25,
    patienceMs,
  );
  await tick();
  await stack.until('the alert has arrived', async () => told().includes(`raised ${rule}`), patienceMs);
  for (let minute = 0; minute < 20; minute++) await tick();
  await stack.until('its end has arrived', async () => told().includes(`resolved ${rule}`), patienceMs);
  await stack.expectSound();
});

test('Force router overload → classifier still runs but router throttles new scrapes.', async () => {
  // Nothing scrapes jobs, as where their boards hang.
  await stack.rows(`select millrace.pause('links', 'scrape_job')`);
  await stack.rows(
    `insert into public.linkedin_links (raw_url) select $1 || '/jobs/many-' || n from generate_series(1, 340) n`,
    [site.url],
  );
  const most: number[] = [];
  const isClassified = async () => {
    await halfAMinute();
    most.push(await unfinished());
    return (await jobsByWord()).new === undefined;
  };
  await stack.until('all jobs are classified', isClassified, patienceMs);
  for (let sweep = 0; sweep < 6; sweep++) await isClassified();
  expect(await jobsByWord()).toEqual({ queued: threshold, classified: 40 });
  const post = await stack.add(serve(postPage, '/posts/2'));
  await stack.reach(post, 'extracted');
  expect(await stack.words(post)).toEqual([
    'new',
    'classified',
    'queued',
    'scraping',
    'scraped',
    'staged',
    'extracted',
  ]);
  const queues = await stack.rows(
    `select queue, ready::int from public.link_queues where queue in ('route', 'scrape.job')`,
  );
  expect(queues).toEqual([
    { queue: 'route', ready: 40 },
    { queue: 'scrape.job', ready: threshold },
  ]);

  await stack.rows(
    `select millrace.cancel(r.id) from (
       select millrace.run_of('links', l.id::text) as id from public.linkedin_links l
       where l.raw_url like '%/jobs/many-%' and l.status = 'queued' order by l.id limit 15) r`,
  );
  await halfAMinute();
  most.push(await unfinished());
  expect(await jobsByWord(), 'room that opens is filled').toEqual({ queued: threshold, classified: 25, dead: 15 });
  expect(Math.max(...most)).toBe(threshold);
  await stack.expectSound();
});
