import fs from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { scratchFolder } from '../../local/platform/scratch-folder.ts';
import { LeadsStack } from '../support/stack/stack.ts';

let leads: LeadsStack;
afterEach(() => leads.expectSound());

const amiss = () => leads.rows('select what, detail from millrace.doctor() where not ok');

describe('in the database', () => {
  beforeAll(async () => {
    leads = await LeadsStack.start();
  });
  afterAll(() => leads.stop());

  test('a wrong wake-up secret is answered 401, which doctor tells, and once connected all goes on', async () => {
    const change = (key: string) =>
      leads.rows(`select vault.update_secret(s.id, $1) from vault.secrets s where s.name = 'millrace_wake_secret'`, [
        key,
      ]);
    await change('wake-up secret of another project');
    const ids = await leads.queued(leads.site.add(['Gloves of kid']));
    await leads.until(
      'the wake-up is answered',
      async () => (await leads.rows('select from net._http_response where status_code = 401')).length > 0,
    );
    const detail = expect.stringMatching(/^leads-scrape answered 401: .*millrace\/connect/);
    expect(await amiss()).toContainEqual({ what: 'the functions answered the last wake-ups', detail });
    expect((await leads.statuses(ids[0]))[0]).toBe('queued');
    const connected = await fetch(`${leads.stack.functionsUrl}/millrace/connect`, {
      method: 'POST',
      headers: { apikey: leads.stack.secretKey },
    });
    expect(await connected.json()).toEqual({
      wake_up: expect.any(Number),
      project_url: leads.stack.apiUrl,
      secret: 'MILLRACE_WAKE_SECRET',
    });
    await leads.advance('10 seconds');
    await leads.sweep();
    await leads.finished(ids);
    await leads.expectCompleted(ids);
  });

  test('a missing secret holds up no write: it is told in the log and by doctor, and once set all goes on', async () => {
    await leads.rows(`delete from vault.secrets where name = 'millrace_wake_secret'`);
    const ids = await leads.queued(leads.site.add(['Hats of felt']));
    expect(await leads.statuses(ids[0])).toEqual(['queued', 'pending', 'pending', 'pending', 'pending']);
    expect(await leads.rows('select level, code, message from millrace.log')).toEqual([
      { level: 'error', code: 'wake_up_not_configured', message: expect.stringMatching(/wake_secret is not set/) },
    ]);
    expect(await amiss()).toContainEqual({
      what: 'wake_secret is set',
      detail: expect.stringMatching(/npx millrace connect/),
    });
    // The secret key wakes where there is no wake-up secret.
    await leads.rows(`select vault.create_secret($1, 'millrace_secret_key')`, [leads.stack.secretKey]);
    await leads.advance('10 seconds');
    await leads.sweep();
    await leads.finished(ids);
    await leads.expectCompleted(ids);
  });
});

test('settings that functions lack are named where a user looks, nothing is lost, and setting them is all there is to do', async () => {
  const dataDir = fs.mkdtempSync(path.join(scratchFolder(), 'millrace-test-'));
  fs.chmodSync(dataDir, 0o711);
  onTestFinished(async () => {
    await leads.stop();
    fs.rmSync(dataDir, { recursive: true, force: true });
  });
  leads = await LeadsStack.start({
    proxies: true,
    services: false,
    dataDir,
    env: { LLM_URL: '', WEBHOOK_SECRET: '' },
  });
  const ids = await leads.queued(leads.site.add(['Shoes of calf']));
  await leads.until('intel has failed once', async () => (await leads.lead(ids[0])).intel_retry_count === 1);
  expect(await leads.lead(ids[0])).toMatchObject({
    scrape_status: 'completed',
    intel_status: 'queued',
    intel_error: expect.stringMatching(/LLM_URL is not set: set the base URL of .*supabase secrets set/),
  });
  expect(leads.stack.functions.logs('millrace').join('\n')).toMatch(/WEBHOOK_SECRET is not set: set whsec_/);
  const headers = { apikey: leads.stack.secretKey };
  const health = await fetch(`${leads.stack.functionsUrl}/leads-intel?health`, { headers });
  expect(health.status).toBe(500);
  expect(await health.text()).toMatch(/LLM_URL is not set/);
  await leads.stop();

  leads = await LeadsStack.start({ proxies: true, services: false, dataDir });
  await leads.finished(ids);
  await leads.expectCompleted(ids);
  expect((await leads.attempts(ids[0], 'intel')).slice(0, 2)).toEqual([
    'intel 1 failed misconfigured',
    'intel 2 completed',
  ]);
});
