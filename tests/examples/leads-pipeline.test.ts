// The leads' whole pipeline on a database of its own, by the helpers that projects have: no function, no HTTP but to scripts.
import { expect, test } from 'vitest';
import { openPipeline, refuses, startModel, startService } from '../../packages/test/index.ts';
import { samples } from '../support/examples/leads-samples.ts';

const lead = {
  email: 'office@nets.test',
  company_url: 'https://nets.test',
  account_id: '9f0c1a2b-0000-4000-8000-000000000001',
};
const faked = {
  intel: samples.intel,
  strategy: samples.strategy,
  subject: samples.subject,
  messaging: samples.messaging,
};

test('a lead completes, its scrape by a service that calls back and its other stages faked', async () => {
  const scraper = await startService('scraper');
  scraper.completes({ pages: samples.scrape.pages });
  await using leads = await openPipeline('leads', { services: [scraper], stages: faked });
  const id = await leads.begin(lead);
  const { stages } = await leads.expectRow(id).toComplete();
  expect(stages.scrape).toMatchObject({ state: 'completed', tries: 1, result: samples.scrape });
  expect(stages.messaging?.result).toEqual(samples.messaging);
  expect(scraper.submitted[0]?.body).toMatchObject({ url: 'https://nets.test/', max_pages: 5 });
  const [row] = await leads.sql('select messaging_status, messaging_result from public.leads');
  expect(row).toEqual({ messaging_status: 'completed', messaging_result: samples.messaging });
});

test('a lead completes with all of its own handlers, after a busy scraper and a busy model', async () => {
  const scraper = await startService('scraper');
  scraper.refuses(429, { retryAfterSeconds: 60 });
  scraper.completes({ pages: samples.scrape.pages });
  const model = await startModel();
  model.answers(refuses(503), samples.intel, samples.strategy, samples.subject, samples.messaging);
  await using leads = await openPipeline('leads', { services: [scraper, model] });
  const began = await leads.now();
  const id = await leads.begin(lead);
  const { stages } = await leads.expectRow(id).toComplete();
  expect(stages.scrape?.tries).toBe(2);
  expect(stages.intel).toMatchObject({ tries: 2, usage: { input_tokens: 1_000 } });
  expect((await leads.now()).getTime() - began.getTime()).toBeGreaterThanOrEqual(60_000);
});

test('a lead whose site has no text fails at scrape, and the expectation that it completes says why', async () => {
  const scraper = await startService('scraper');
  scraper.completes({ pages: [] });
  await using leads = await openPipeline('leads', { services: [scraper], stages: faked });
  const id = await leads.begin(lead);
  await leads.expectRow(id).toFail({ stage: 'scrape', code: 'no_content' });
  await expect(leads.expectRow(id).toComplete()).rejects.toThrow(
    /^Row \S+ of leads failed at stage scrape: no_content: No text was found on the site\.\n {2}scrape: failed, no_content \(permanent\)/,
  );
});

test('a scrape that never ends fails at its deadline, once the clock has passed it', async () => {
  const scraper = await startService('scraper');
  scraper.hangs();
  await using leads = await openPipeline('leads', { services: [scraper], stages: faked });
  const id = await leads.begin(lead);
  await leads.work();
  expect((await leads.row(id)).stages.scrape?.state).toBe('waiting');
  await leads.advance('11 minutes');
  expect((await leads.row(id)).stages.scrape).toMatchObject({ state: 'queued', tries: 2 });
});

test('a fake that its stage could not be is refused as the stage’s own result would be', async () => {
  const scraper = await startService('scraper');
  await using leads = await openPipeline('leads', {
    services: [scraper],
    stages: { ...faked, scrape: { pages: 'none' } },
  });
  const id = await leads.begin(lead);
  await leads.expectRow(id).toFail({ stage: 'scrape', code: 'invalid_output' });
});

test('a pipeline opens as a project that was just swept, and alerts are judged a minute later', async () => {
  await using leads = await openPipeline('leads', { stages: faked, at: '2026-11-30T08:00:10Z' });
  const kept = async () => {
    const [row] = await leads.sql(`
      select value as judged, exists (select from millrace.last_findings) as found, millrace.sweep_due() as due
      from millrace.settings where name = 'rules_judged_at'`);
    return row;
  };
  await leads.work();
  expect(await kept()).toEqual({ judged: '2026-11-30 08:00', found: false, due: false });
  await leads.advance('1 minute');
  expect(await kept()).toEqual({ judged: '2026-11-30 08:01', found: true, due: false });
});
