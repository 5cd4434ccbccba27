import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { functionsFolder } from '../support/stack/functions-folder.ts';
import { LeadsStack } from '../support/stack/stack.ts';

const functions = functionsFolder({ projectUrlFrom: 'PROJECT_PROXY_URL' });

let leads: LeadsStack;
beforeAll(async () => {
  leads = await LeadsStack.start({ proxies: true, functionsDir: functions.path });
  // It would hide what does not come about by itself.
  await leads.rows(`select cron.unschedule('millrace-sweep')`);
});
afterEach(async () => {
  leads.proxies.toProject.decide = () => 'pass';
  await leads.expectSound();
});
afterAll(async () => {
  await leads.stop();
  functions.remove();
});

test('the sweep repeats a wake-up that got lost on the way', async () => {
  const ids = await leads.insert([leads.site.add(['Sails and awnings']), leads.site.add(['Oars of ash'])]);
  const session = await leads.session();
  await session.query('begin');
  await session.query(`update public.leads set scrape_status = 'queued' where id = any ($1)`, [ids]);
  // As after a crash of the server, which empties pg_net's queue.
  expect((await session.query('delete from net.http_request_queue')).rowCount).toBe(1);
  await session.query('commit');
  await leads.advance('10 seconds');
  await leads.sweep();
  await leads.finished(ids);
  await leads.expectCompleted(ids);
});

test('wakes between functions that fail are left to the database', async () => {
  // Functions hand jobs over to one another as well: those calls name a callback or jobs.
  leads.proxies.toProject.decide = ({ path, body }) =>
    /^\/functions\/v1\/leads-[a-z]+$/.test(path) && !body.includes('"jobs"') ? { status: 503, json: {} } : 'pass';
  const ids = await leads.queued(leads.site.add(['Pumps for bilges']));
  await leads.finished(ids);
  await leads.expectCompleted(ids);
  expect(leads.stack.functions.logs('leads-intel').join('\n')).toMatch(/the database wakes instead/);
});

test.each(['millrace_claim', 'millrace_complete', 'millrace_leave', 'millrace_resume'])(
  'when the answer of %s is lost, the call is repeated and counts once',
  async (name) => {
    const calls: string[] = [];
    leads.proxies.toProject.decide = ({ path, body }) => {
      if (!path.endsWith(`/rpc/${name}`)) return 'pass';
      calls.push(body);
      // Every call is answered at its second try.
      return calls.filter((call) => call === body).length === 1 ? 'lose answer' : 'pass';
    };
    const urls = Array.from({ length: 4 }, (_, n) => leads.site.add([`Charts of strait ${n}`]));
    const ids = await leads.queued(...urls);
    // A function that boots slowly misses its wake-up, and nobody else sweeps here.
    let swept = Date.now();
    await leads.finished(ids, async () => {
      if (Date.now() - swept < 5000) return;
      await leads.sweep();
      swept = Date.now();
    });
    await leads.expectCompleted(ids);
    // A worker that has reported says goodbye with that; one that finds nothing leaves by a call of its own.
    const { functionsUrl, secretKey } = leads.stack;
    const idle = await fetch(`${functionsUrl}/leads-intel`, {
      method: 'POST',
      headers: { apikey: secretKey },
      body: '{}',
    });
    expect(idle.status).toBe(202);
    await leads.until(
      'every call was repeated',
      async () => calls.length > 0 && calls.every((body) => calls.filter((call) => call === body).length > 1),
    );
    for (const id of ids) expect(await leads.attempts(id)).toHaveLength(5);
  },
);

test('a database that has lost its address has it again after any request to any function, a stranger’s too', async () => {
  const secrets = `select name, decrypted_secret as secret from vault.decrypted_secrets
    where name in ('millrace_project_url', 'millrace_wake_secret') order by name`;
  const before = await leads.rows(secrets);
  expect(before).toHaveLength(2);
  await leads.rows(`delete from vault.secrets where name in ('millrace_project_url', 'millrace_wake_secret')`);
  // No isolate of this function has answered before. From here on all wake-ups come by the proxy.
  const answer = await fetch(`${leads.stack.functionsUrl}/site-notices-tell`, { method: 'POST', body: '{}' });
  expect(answer.status).toBe(401);
  const [, secret] = before;
  const asFunctionsSee = { name: 'millrace_project_url', secret: leads.proxies.env.PROJECT_PROXY_URL };
  await leads.until('the database has an address', async () => (await leads.rows(secrets)).length === 2);
  expect(await leads.rows(secrets)).toEqual([asFunctionsSee, secret]);
  const ids = await leads.queued(leads.site.add(['Ropes and riggings']));
  await leads.finished(ids);
  await leads.expectCompleted(ids);
});
