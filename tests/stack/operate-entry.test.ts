// Who is let in to the operator's page: by a link, by a token and by a password, from the machine and from a static host.
import http from 'node:http';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { title } from '../support/stack/operate-page.ts';
import { OperateStack } from '../support/stack/operate-stack.ts';

let operate: OperateStack;
beforeAll(async () => {
  operate = await OperateStack.start();
});
afterEach(async () => {
  await operate.closeWindows();
});
afterAll(() => operate?.stop());

test('a link opens the page once, and then the cookie alone, which no script reads', async () => {
  const link = operate.stack.operateLink();
  const page = await operate.visit(link);
  await title(page, 'Overview');
  expect(new URL(page.url()).hash).toBe('');
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/operate' });
  await page.reload();
  await title(page, 'Overview');
  expect(JSON.stringify(await page.evaluate(() => ({ ...sessionStorage, ...localStorage })))).not.toContain(
    'sb_secret',
  );

  const other = await operate.visit(link);
  await other.getByRole('alert').filter({ hasText: 'This link was used before' }).waitFor();
  await title(other, 'Sign in');

  await page.getByRole('button', { name: 'Sign out' }).click();
  await title(page, 'Sign in');

  // A server that was started anew knows no cookie of the one before.
  const left = await operate.atMachine({ isOwn: true });
  await left.context().clearCookies();
  await left.goto(`${operate.pageUrl}#/runs`);
  await left.getByRole('alert').filter({ hasText: 'This server does not know this browser' }).waitFor();
  await left.getByRole('dialog').getByText('npx millrace open').waitFor();
  // A browser lets no page refuse the second.
  for (const _ of ['first', 'second']) await left.keyboard.press('Escape');
  expect(await left.getByRole('dialog').count()).toBe(1);
});

/** Asks the local API with these headers; resolves to the status of its answer. */
function knock(name: string, headers: Record<string, string>, body: unknown = { p_query: {} }): Promise<number> {
  const { port } = new URL(operate.pageUrl);
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: `/operate/api/${name}`, method: 'POST', headers };
    const request = http.request(options, (answer) => resolve(answer.resume().statusCode ?? 0));
    request.once('error', reject).end(JSON.stringify(body));
  });
}

test('the API lets in nobody without its cookie, from another origin or under another name', async () => {
  const page = await operate.atMachine();
  const [{ name = '', value = '' } = {}] = await page.context().cookies();
  const { origin, host } = new URL(operate.pageUrl);
  const own = { host, origin, cookie: `${name}=${value}`, 'content-type': 'application/json' };
  expect(await knock('millrace_overview', own)).toBe(200);
  expect(await knock('millrace_overview', { ...own, cookie: `${name}=made-up` })).toBe(401);
  expect(await knock('millrace_overview', { ...own, origin: 'https://evil.test' })).toBe(403);
  expect(await knock('millrace_overview', { ...own, host: 'evil.test', origin: 'http://evil.test' })).toBe(403);
  expect(await knock('millrace_claim', own)).toBe(404);
  expect(await knock('enter', own, { token: 'made-up' })).toBe(403);
});

test('a user who signs in sees what their role allows, and a stranger is refused', async () => {
  const page = await operate.signedInAs('vera');
  await page.getByText('viewer').first().waitFor();
  await page.reload();
  await title(page, 'Overview');

  const stranger = await operate.visit(operate.pageUrl);
  await stranger.getByLabel('Publishable key').fill(operate.stack.publishableKey);
  await operate.enterToken(stranger, await operate.stack.signUserToken({ sub: 'nobody' }));
  await stranger.getByRole('alert').filter({ hasText: 'you are no operator here' }).waitFor();
});

test('foreign values in the browser’s storage, or a browser without one, leave the page as it is', async () => {
  const page = await operate.visit(operate.hostedUrl);
  const signIn = async () => {
    await page.reload();
    await title(page, 'Sign in');
  };
  for (const found of ['no JSON', '"text"', '{}', '[null]']) {
    await page.evaluate((text) => {
      for (const storage of [sessionStorage, localStorage])
        for (const name of ['session', 'project', 'filters']) storage.setItem(`millrace.${name}`, text);
    }, found);
    await signIn();
  }
  await page.addInitScript(() => {
    for (const name of ['sessionStorage', 'localStorage'])
      Object.defineProperty(window, name, {
        get: () => {
          throw new DOMException('Access is denied for this document.', 'SecurityError');
        },
      });
  });
  await signIn();
  await page.getByLabel('Address of the project').fill(operate.stack.apiUrl);
  await page.getByLabel('Publishable key').fill(operate.stack.publishableKey);
  await operate.enterToken(page, await operate.stack.signUserToken({ sub: 'vera' }));
  await title(page, 'Overview');
});

test('whose role is taken away between page and click is refused, and what they typed stays', async () => {
  const page = await operate.signedInAs('otto');
  await page.goto(`${operate.pageUrl}#/pipeline/orders`);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill('a quarter of an hour of work');
  await operate.rows(`delete from millrace.operators where subject = 'otto'`);
  await dialog.getByRole('button', { name: 'Pause' }).click();
  await dialog.getByRole('alert').filter({ hasText: 'you are no operator here' }).waitFor();
  expect(await dialog.getByLabel('Reason').inputValue()).toBe('a quarter of an hour of work');
  await operate.rows(`insert into millrace.operators (subject, role, payloads) values ('otto', 'operator', true)`);
});

test('a user who signs in with a password goes on with a new token, and with what they typed once the session is over', async () => {
  const olga = await operate.person('olga', 'operator');
  const page = await operate.visit(operate.pageUrl);
  await operate.enterPassword(page, 'olga');
  await title(page, 'Overview');
  const tokens = () => page.evaluate(() => JSON.parse(sessionStorage.getItem('millrace.session') ?? '{}'));
  const { token: first, refresh } = await tokens();
  // Nobody waits until it has expired.
  const expired = new Set([`Bearer ${first}`]);
  await page.route('**/rest/v1/rpc/**', (route) =>
    expired.has(route.request().headers().authorization ?? '')
      ? route.fulfill({ status: 401, json: { message: 'JWT expired' } })
      : route.fallback(),
  );
  await page.goto(`${operate.pageUrl}#/pipeline/orders`);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  expect((await tokens()).refresh).not.toBe(refresh);

  const dialog = page.getByRole('dialog', { name: 'Pause orders' });
  await dialog.getByLabel('Reason').fill('typed before it ended');
  expired.add(`Bearer ${(await tokens()).token}`);
  await page.route('**/auth/v1/token?*', (route) => route.abort(), { times: 1 });
  await dialog.getByRole('button', { name: 'Pause' }).click();
  await dialog.getByRole('alert').filter({ hasText: 'The project does not answer' }).waitFor();

  await operate.rows(`update auth.sessions set not_after = now() - interval '1 second' where user_id = $1`, [olga]);
  await dialog.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await operate.enterPassword(page, 'olga');
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor({ state: 'hidden' });
  expect(await dialog.getByLabel('Reason').inputValue()).toBe('typed before it ended');
  await dialog.getByRole('button', { name: 'Close' }).click();
});

test('on a static host a password opens what the role allows, and nothing to strangers; who signs out ends it', async () => {
  for (const role of ['viewer', 'operator'] as const) await operate.person(`${role}.hosted`, role);
  await operate.person('stranger');
  const page = await operate.visit(operate.hostedUrl);
  const refused = (said: string) => page.getByRole('alert').filter({ hasText: said }).waitFor();
  await title(page, 'Sign in');
  await operate.enterPassword(page, 'stranger', 'wrong');
  await refused('Invalid login credentials');
  await operate.enterPassword(page, 'stranger');
  await refused('you are no operator here');
  await title(page, 'Sign in');
  const may: Record<string, object> = {};
  for (const role of ['viewer', 'operator']) {
    await operate.enterPassword(page, `${role}.hosted`);
    await title(page, 'Overview');
    await page.goto(`${operate.hostedUrl}#/pipeline/orders`);
    await page.reload();
    await page.locator('#account').getByText(role, { exact: true }).waitFor();
    const pause = page.getByRole('button', { name: /^Pause/ });
    await pause.waitFor();
    const acts = (await pause.getAttribute('aria-disabled')) === null;
    may[role] = { acts };
    const signedOut = page.waitForResponse('**/auth/v1/logout?scope=local');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signedOut;
    await title(page, 'Sign in');
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    await page.goto(`${operate.hostedUrl}#/`);
  }
  expect(may).toEqual({
    viewer: { acts: false },
    operator: { acts: true },
  });
  expect(
    await operate.value(`select count(*)::int from auth.sessions s join auth.users u on u.id = s.user_id
      where u.email like '%.hosted@example.com'`),
  ).toBe(0);
});

test('a visitor with the publishable key alone is refused both ways, and no function answers them', async () => {
  const { apiUrl, publishableKey, anonKey, secretKey, serviceRoleKey } = operate.stack;
  for (const url of [operate.pageUrl, operate.hostedUrl]) {
    const page = await operate.visit(url);
    await page.getByLabel('Address of the project').fill(apiUrl);
    await page.getByLabel('Publishable key').fill(publishableKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(await page.getByLabel('E-mail', { exact: true }).evaluate((field) => field.matches(':invalid'))).toBe(true);
    const signsIn = async (token: string, said: string) => {
      await operate.enterToken(page, token);
      await page.getByRole('alert').filter({ hasText: said }).waitFor();
    };
    await signsIn(anonKey, 'whom millrace.operators lists');
    await signsIn(serviceRoleKey, 'This is a secret key, which belongs into no browser.');
    await page.getByLabel('Publishable key').fill(secretKey);
    await signsIn(await operate.stack.signUserToken({ sub: 'vera' }), 'This is a secret key');
    await title(page, 'Sign in');
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))).toBe('{}');
  }
  const functions = await operate.rows<{
    name: string;
    takes: string;
  }>(`select p.proname as name, p.proargnames[1] as takes
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'public' and p.proname like 'millrace_%' and p.proargnames[1] in ('p_query', 'p_request')`);
  expect(functions.length).toBeGreaterThan(12);
  const answers = await Promise.all(
    functions.map(async ({ name, takes }) => {
      const response = await fetch(`${apiUrl}/rest/v1/rpc/${name}`, {
        method: 'POST',
        headers: { apikey: publishableKey, 'content-type': 'application/json' },
        body: JSON.stringify({ [takes]: {} }),
      });
      return `${response.status} ${((await response.json()) as { code?: string }).code}`;
    }),
  );
  expect(new Set(answers)).toEqual(new Set(['401 42501']));
});
