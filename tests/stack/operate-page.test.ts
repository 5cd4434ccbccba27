// The operator's page in a real Chromium, on a real stack: opened by a link and by signing in, by mouse and by keyboard.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import zlib from 'node:zlib';
import type { Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { barriers } from '../support/stack/barriers.ts';
import { OperateStack } from '../support/stack/operate-stack.ts';
import { hostile } from '../support/stack/orders-stack.ts';
import { playbookWalks } from '../support/stack/playbook-walks.ts';
import { Walk } from '../support/stack/walk.ts';

let operate: OperateStack;
beforeAll(async () => {
  operate = await OperateStack.start();
});
afterEach(async () => {
  await operate.closeWindows();
});
afterAll(() => operate?.stop());

const builtFolder = path.join(import.meta.dirname, '..', '..', 'pages', 'dist', 'operate');
const title = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 2, name }).waitFor();
const shoot = async (page: Page, name: string) => {
  const folder = process.env.SCREENSHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
};

/** Screens with something on them to wait for. */
const screens: [name: string, address: string, shown: string][] = [
  ['overview', '#/', 'no_address'],
  ['pipeline', '#/pipeline/orders?stage=invoice', 'Errors of the last hour'],
  ['runs', '#/runs?pipeline=orders&status=failed', 'unreadable'],
  ['run', '#/run/1', 'What people did to it'],
  ['dead', '#/dead', 'no_address'],
  ['alerts', '#/alerts', 'no_address'],
  ['status', '#/status/page_links?value=new', 'Rows there'],
  ['functions', '#/functions', 'orders-ship'],
  ['costs', '#/costs', 'The dearest runs'],
  ['limits', '#/limits', 'printer'],
  ['settings', '#/settings', 'no address in Vault'],
  ['versions', '#/settings/orders', 'What version 2 changed'],
  ['journal', '#/journal', 'grant'],
];

/**
 * Fails for what axe finds here, light and dark, wide and narrow, and where the page is wider than its window. A theme changes no
 * width and a width no colour, so that two of the four are enough.
 */
async function isOpenToAll(page: Page, name: string): Promise<void> {
  for (const [width, theme] of [
    [1280, 'light'],
    [390, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: theme });
    const found = await barriers(page);
    // On a narrow one no table is wider than its place, either; a graph may be.
    const wide = await page.evaluate(() => {
      const tables = innerWidth < 640 ? [...document.querySelectorAll('.small')] : [];
      const over = tables.map((table) => table.scrollWidth - table.clientWidth);
      return Math.max(0, ...over) + document.documentElement.scrollWidth;
    });
    await shoot(page, `${name}-${theme}-${width}`);
    expect({ name, theme, width: wide, found }).toEqual({ name, theme, width, found: [] });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

test('no screen has a barrier, light or dark, wide or narrow, and none is wider than its window', async () => {
  const page = await operate.atMachine();
  for (const [name, address, shown] of screens) {
    await page.goto(operate.pageUrl + address);
    await page.getByText(shown).first().waitFor();
    await isOpenToAll(page, name);
  }
});

test('no dialog has a barrier, nor have the preview of a bulk and the API', async () => {
  const page = await operate.atMachine();
  await page.keyboard.press('/');
  await page.getByRole('dialog').waitFor();
  await isOpenToAll(page, 'palette');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await isOpenToAll(page, 'keys');
  await page.keyboard.press('Escape');
  for (const [address, action] of [
    ['#/pipeline/orders?stage=ship', 'Throttle'],
    ['#/pipeline/orders?stage=price', 'Bypass'],
    ['#/pipeline/orders?stage=ship', 'Fail'],
    ['#/alerts', 'Silence'],
    ['#/run/1', 'Reset'],
  ] as const) {
    await page.goto(operate.pageUrl + address);
    await page.getByRole('button', { name: action, exact: true }).first().click();
    await page.getByRole('dialog').getByLabel('Reason').waitFor();
    await isOpenToAll(page, action);
    await page.keyboard.press('Escape');
  }
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed`);
  await page.getByRole('button', { name: /^Retry all/ }).click();
  await title(page, /^Bulk/);
  await page.getByText('runs, from').waitFor();
  await isOpenToAll(page, 'preview');
  await page.getByRole('button', { name: 'Begin', exact: true }).click();
  await page.getByRole('dialog').getByLabel('Reason').waitFor();
  await isOpenToAll(page, 'begin');
  const api = await operate.visit(operate.pageUrl);
  await title(api, 'Sign in');
  await isOpenToAll(api, 'sign-in');
});

test('the page keeps to its size, to its own origin and to a strict policy', () => {
  const files = fs.readdirSync(builtFolder).map((name) => fs.readFileSync(path.join(builtFolder, name)));
  const sum = (sizes: number[]) => sizes.reduce((all, size) => all + size, 0);
  expect(sum(files.map((file) => file.length))).toBeLessThanOrEqual(350_000);
  expect(sum(files.map((file) => zlib.gzipSync(file).length))).toBeLessThanOrEqual(106_000);
  // Code for development names the place of each element in the machine's own files.
  expect(files.filter((file) => file.includes('columnNumber'))).toEqual([]);
  const page = fs.readFileSync(path.join(builtFolder, 'index.html'), 'utf8');
  const policy = /http-equiv="Content-Security-Policy"\s+content="([^"]+)"/.exec(page)?.[1] ?? '';
  const rules = Object.fromEntries(policy.split('; ').map((rule) => [rule.split(' ')[0], rule.split(' ').slice(1)]));
  expect(rules).toMatchObject({ 'default-src': ["'none'"], 'script-src': ["'self'"], 'style-src': ["'self'"] });
  expect(policy).not.toMatch(/unsafe|\*(?!\b)(?!;| http|$)/);
  expect(page).not.toMatch(/(src|href)="(https?:)?\/\//);
});

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

test('whoever signs in sees what their role allows, and a stranger hears that they are none', async () => {
  const page = await operate.signedInAs('vera');
  await page.getByText('viewer').first().waitFor();
  await page.reload();
  await title(page, 'Overview');

  const stranger = await operate.visit(operate.pageUrl);
  await stranger.getByLabel('Publishable key').fill(operate.stack.publishableKey);
  await operate.enterToken(stranger, await operate.stack.signUserToken({ sub: 'nobody' }));
  await stranger.getByRole('alert').filter({ hasText: 'you are no operator here' }).waitFor();
});

test('figures that cannot be asked for anew stay, and their age is told', async () => {
  const page = await operate.atMachine({ isOwn: true });
  await page.clock.install();
  await page.reload();
  const orders = page.getByRole('link', { name: 'orders', exact: true });
  await orders.waitFor();
  await page.route('**/api/millrace_*', (route) => route.abort());
  await page.clock.fastForward(20_000);
  await page.getByText(/What you see is 2\d s old/).waitFor();
  await orders.waitFor();
  await page.getByText(/Not known whether all is well since the last answer, at \d\d:/).waitFor();
  expect(
    await page
      .locator('.engine')
      .getByText(/^(All is well|Not well)/)
      .count(),
    'a verdict',
  ).toBe(0);
  // The age of what was answered stands still: nobody knows whether the sweep has run since.
  await page.getByText(/sweep ran \d+ s before the last answer/).waitFor();
  await page.clock.fastForward(120_000);
  await page.getByText(/What you see is .* min old/).waitFor();
  await page.getByText(/sweep ran \d+ s before the last answer/).waitFor();
  expect(await page.getByText('sweep does not run').count()).toBe(0);
  await page.unroute('**/api/millrace_*');
  await page.clock.fastForward(30_000);
  await page.getByText(/What you see is .* old/).waitFor({ state: 'hidden' });
});

test('a count that stopped at its bound is marked on the card, the node, the table and in a dialog', async () => {
  const page = await operate.atMachine();
  const crowded = { ready: 10_000, in_backoff: 12, waiting: 345, late: 10_000, failed: 10_000 };
  const change = (answer: Record<string, unknown>, list: string) => ({
    ...answer,
    [list]: (answer[list] as { stage: string }[]).map((of) =>
      of.stage === 'price' ? { ...of, ...crowded, at_least: ['ready', 'late', 'failed'] } : of,
    ),
  });
  await changeAnswer(page, 'overview', (answer) => change(answer, 'stages'));
  await changeAnswer(page, 'pipeline', (answer) => change(answer, 'health'));
  await page.reload();
  const card = page.getByRole('region', { name: 'orders', exact: true });
  for (const said of ['10k+ ready', '345 waiting', '12 in backoff', '10k+ late', '10k+ dead'])
    await card.getByRole('link', { name: said, exact: true }).waitFor();
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=price`);
  const node = page.getByRole('region', { name: 'Graph of the stages' }).getByRole('link', { name: 'price' });
  for (const said of ['10k+ ready', '345 waiting, 12 in backoff', '✗ 10k+ dead, 10k+ late'])
    await node.getByText(said).waitFor();
  const row = page.getByRole('region', { name: 'Stages', exact: true }).getByRole('row').filter({ hasText: 'price' });
  expect(await row.getByRole('cell', { name: '10k+', exact: true }).count()).toBe(3);
  await page.getByRole('button', { name: 'Throttle', exact: true }).click();
  await page.getByRole('dialog').getByText('Ready now: 10k+.').waitFor();
});

test('a card tells what was spent, and a row of a list leads to its pipeline and its stage', async () => {
  const page = await operate.atMachine();
  const orders = page.getByRole('region', { name: 'orders', exact: true });
  await orders.getByText('failed, $0.13 spent').waitFor();
  // Its trend is a picture with the numbers in words.
  const done = await operate.value<number>(
    `select sum(n)::int from millrace.sums t join millrace.stages s on s.id = t.stage_id
     where t.unit = 'hour' and t.outcome = 'completed' and s.name = 'label'`,
  );
  await orders.getByRole('img', { name: `Completed at label in the last hour: ${done}; ` }).waitFor();
  for (const [list, row] of [
    ['#/runs?status=failed&error_code=no_address', /no_address/],
    ['#/dead', /no_address/],
    ['#/alerts?show=all', /no_address/],
  ] as const) {
    await page.goto(operate.pageUrl + list);
    const cells = page.getByRole('row', { name: row }).first();
    await cells.getByRole('link', { name: 'orders', exact: true }).click();
    await title(page, 'Pipeline orders');
    await page.goBack();
    if (list.startsWith('#/alerts')) continue;
    await cells.getByRole('link', { name: 'invoice', exact: true }).first().click();
    await page.getByRole('heading', { name: 'Stage invoice' }).waitFor();
  }
});

test('what rows and errors say is text, with what hides or turns it round made visible', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed&error_code=no_address`);
  const shown = '<img src=x onerror="document.title=1"><b>Tea</b>⟨U+202E⟩cod⟨U+0007⟩';
  await page.getByText(shown).first().waitFor();
  expect(await page.locator('main b, main img').count()).toBe(0);
});

test('a viewer finds each action refused, with the reason, whoever leaves the overview before its answer too', async () => {
  const page = await operate.signedInAs('vera');
  await page.route(/millrace_overview/, (route) => page.url().includes('#/pipeline') && route.continue());
  await page.reload();
  await title(page, 'Overview');
  await page.goto(`${operate.pageUrl}#/pipeline/orders`);
  const pause = page.getByRole('button', { name: 'Pause: You may read here, but not act.', exact: true });
  await pause.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('status').filter({ hasText: 'You may read here, but not act.' }).waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

test('a message’s link opens the silence of its alerts, filled in, and silences none before somebody says why', async () => {
  const silences = () => operate.value<number>('select count(*)::int from millrace.silences where until > now()');
  const ids = await operate.value<number[]>(
    'select array_agg(l.id::int) from (select id from millrace.alerts where resolved_at is null order by id limit 2) l',
  );
  expect(ids).toHaveLength(2);
  const page = await operate.atMachine();
  const before = await silences();
  await page.goto(`${operate.pageUrl}#/alerts?silence=${ids.join('+')}&minutes=60`);
  const dialog = page.getByRole('dialog', { name: `Silence alerts ${ids.join(', ')}` });
  expect(await dialog.getByLabel('For how many minutes').inputValue()).toBe('60');
  await dialog.getByRole('button', { name: 'Silence', exact: true }).click();
  expect(await dialog.getByLabel('Reason').evaluate((field: HTMLInputElement) => field.validity.valueMissing)).toBe(
    true,
  );
  expect(await silences()).toBe(before);
  await dialog.getByLabel('Reason').fill('it is known');
  await dialog.getByRole('button', { name: 'Silence', exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  expect(await silences()).toBe(before + 2);
  await operate.value(`with ended as (delete from millrace.silences where reason = 'it is known' returning 1)
    select count(*)::int from ended`);
  await page.reload();
  await title(page, 'Alerts');
  expect(await page.getByRole('dialog').count()).toBe(0);
  expect(await page.getByRole('link', { name: 'what to do' }).first().getAttribute('href')).toMatch(
    /^https:\/\/app\.unpkg\.com\/millrace@[\d.]+\/files\/docs\/playbooks\/[a-z-]+\.md$/,
  );
});

test('a shared limit is throttled and let go where its room is shown', async () => {
  const page = await operate.atMachine();
  await page.keyboard.press('g');
  await page.keyboard.press('l');
  await title(page, 'Limits');
  const row = page.getByRole('row', { name: /printer/ }).first();
  await row.getByText('of 60').waitFor();
  await page.getByText('$0 of $5').first().waitFor();
  await page.getByRole('row', { name: /links\.route_job .*turns for each host of canonical_url/ }).waitFor();
  expect(await page.getByText(/\bnan\b|undefined/i).count()).toBe(0);
  await row.getByRole('button', { name: 'Throttle', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('orders.read').waitFor();
  await dialog.getByLabel('Reason').fill('it jams');
  await dialog.getByRole('button', { name: 'Throttle' }).click();
  await row.getByText('it jams').waitFor();
  await row.getByRole('button', { name: 'Unthrottle', exact: true }).click();
  await dialog.getByLabel('Reason').fill('it is mended');
  await dialog.getByRole('button', { name: 'Unthrottle' }).click();
  await row.getByText('it jams').waitFor({ state: 'hidden' });
});

test('a status tells its moves and rows, versions what changed, and a channel is tried', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/status/page_links`);
  await page.getByRole('link', { name: 'new', exact: true }).click();
  await page.getByRole('cell', { name: 'classifying', exact: true }).last().waitFor();
  await page
    .getByRole('region', { name: 'Rows', exact: true })
    .getByRole('cell', { name: '1', exact: true })
    .first()
    .waitFor();
  await page.goto(`${operate.pageUrl}#/settings/orders`);
  await title(page, 'Versions of orders');
  await page.getByRole('row', { name: /added invoice › needs/ }).waitFor();
  await page.goto(`${operate.pageUrl}#/settings`);
  await page.getByRole('button', { name: 'Send a test', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send a test' }).click();
  await page.getByRole('row', { name: /chat slack .* waiting/ }).waitFor();
});

test('a run tells its graph, what its agent called and what a person is asked', async () => {
  const page = await operate.atMachine();
  const run = await operate.value(`select max(id) from millrace.runs`);
  await page.goto(`${operate.pageUrl}#/run/${run}`);
  await page.getByRole('region', { name: 'Graph of the stages' }).getByText('waiting').waitFor();
  await page.getByRole('region', { name: 'Turns' }).getByText('calls look_up').waitFor();
  await page.getByText('asked, handed over').click();
  await page.getByText('<img src=x onerror="document.title=1"><b>Tea</b>⟨U+202E⟩cod⟨U+0007⟩').waitFor();
  await page.getByRole('region', { name: 'Decisions' }).getByText('waits for an answer').waitFor();
});

test('a filter is kept in the browser, and what no field shows is let go by a click', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed&since=2020-01-01`);
  await page.getByRole('button', { name: 'Ask for any since' }).click();
  expect(await page.getByRole('combobox', { name: 'Status' }).inputValue()).toBe('failed');
  await page.waitForURL(/status=failed$/);
  await page.getByRole('button', { name: 'Save this filter' }).click();
  await page.getByLabel('Name').fill('what failed');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Clear' }).click();
  await page.reload();
  await page.getByRole('link', { name: 'what failed' }).click();
  await page.waitForURL(/pipeline=orders&status=failed$/);
  await page.goBack();
  await page.waitForURL(/#\/runs$/);
  await page.getByRole('button', { name: 'Forget the filter what failed' }).click();
  expect(await page.getByRole('link', { name: 'what failed' }).count()).toBe(0);
});

test('a viewer reads which bulks are under way, and is led to none that would refuse them', async () => {
  const bulk = { bulk: 1, by: 'otto', done: 2, faults: 0, preview: { runs: 5 } };
  const underWay = { ...bulk, do: { verb: 'retry' }, filter: { pipeline: 'orders' } };
  const links: Record<string, number> = {};
  for (const [name, page] of Object.entries({
    vera: await operate.signedInAs('vera'),
    api: await operate.atMachine(),
  })) {
    await page.route('**/millrace_overview', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), bulks: [underWay] } });
    });
    await page.reload();
    const shown = page.getByRole('region', { name: 'Bulks under way' });
    await shown.getByText('retry in orders').waitFor();
    links[name] = await shown.getByRole('link').count();
  }
  expect(links).toEqual({ vera: 0, api: 1 });
});

test('a key that is pressed the moment a screen is there is heard, and the focus stays where somebody puts it', async () => {
  const page = await operate.atMachine({ isOwn: true });
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (document.querySelector('h2')?.textContent !== 'Overview') return;
      observer.disconnect();
      document.querySelector('nav a')?.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
      (document.querySelector('nav a') as HTMLElement).focus();
    }).observe(document, { childList: true, subtree: true });
  });
  await page.reload();
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.locator('.card').first().waitFor();
  await page.keyboard.press('Escape');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Overview');
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('A');
});

test('a list finds runs by a text anywhere in them, says how many match, and claims no more than was looked at', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders`);
  await page.getByText('40 match', { exact: true }).waitFor();
  await page.getByLabel('Text', { exact: true }).fill('FILE has no');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('3 match', { exact: true }).waitFor();
  expect(await page.getByRole('row').filter({ hasText: 'the file has no text' }).count()).toBe(3);
  const all = page.getByRole('button', { name: 'Retry all that match …' });
  expect(await all.getAttribute('title')).toContain('choose runs');
  await page
    .getByRole('checkbox', { name: /^Run \d/ })
    .first()
    .check();
  await page.getByRole('button', { name: 'Retry 1 chosen …' }).waitFor();
  await page.getByRole('button', { name: /^Search/ }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('has no text');
  await page
    .getByRole('dialog')
    .getByRole('link', { name: /^Order \d+ – orders, failed/ })
    .first()
    .waitFor();
  await page
    .getByRole('dialog')
    .getByRole('link', { name: /^All runs with “has no text”/ })
    .click();
  await page.getByText('3 match', { exact: true }).waitFor();
  await page.route('**/millrace_runs', (route) =>
    route.fulfill({
      json: JSON.stringify(route.request().postDataJSON()).includes('"count":true')
        ? { count: 2500, next: '7' }
        : { runs: [], next: '7' },
    }),
  );
  await page.reload();
  await page.getByText('2,500+ match', { exact: true }).waitFor();
  await page.getByText(/^None among the newest [\d,]+ runs\. There are more to look at\.$/).waitFor();
  await page.getByRole('button', { name: 'Search further' }).waitFor();
});

test('the palette finds a run by what it is called, by the keyboard alone', async () => {
  const page = await operate.atMachine();
  await page.keyboard.press('/');
  await page.keyboard.type('Order 7');
  await page.getByRole('link', { name: /Order 7 – orders/ }).waitFor();
  await page.keyboard.press('Enter');
  await title(page, /^Run \d+/);
  await page.route('**/millrace_runs', (route) => route.abort());
  await page.keyboard.press('/');
  await page.keyboard.type('Order 7');
  await page.getByText('The project did not answer, so no run was searched.').waitFor();
});

test('what anybody has put into the browser’s storage, or a browser that has none, leaves the page as it is', async () => {
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

test('who signs in with a password goes on with a new token, and once the session is over, over what they typed', async () => {
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

test('who has the publishable key alone is let in by neither way, and no function answers them', async () => {
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

test('an engine that does not know what the page asks is called older or newer than it', async () => {
  const page = await operate.atMachine();
  await page.route('**/api/millrace_limits', (route) =>
    route.fulfill({
      status: 404,
      json: { message: 'Could not find the function public.millrace_limits in the schema cache' },
    }),
  );
  await page.goto(`${operate.pageUrl}#/limits`);
  await page.getByText('older or newer than this page').waitFor();
  // An API that answers in another shape takes down that screen, and none beside it.
  await page.route('**/api/millrace_alerts', (route) => route.fulfill({ json: { all: [], next: null } }));
  await page.goto(`${operate.pageUrl}#/alerts`);
  await page.getByText('This screen cannot show what the project answered.').waitFor();
  await page.unroute('**/api/millrace_alerts');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page
    .getByRole('row', { name: /no_address/ })
    .first()
    .waitFor();
});

const forged = [
  ['#/runs?status=failed%27--', 'must be one of'],
  ['#/runs?since=never', 'must be a time'],
  ['#/runs?pipeline=%3Cimg%20src=x%20onerror=alert(1)%3E', 'there is no pipeline <img src=x onerror=alert(1)>'],
  ['#/runs?parent=1e3', 'p_query.parent is "1e3", but must be a whole number'],
  ['#/runs?pipeline=orders&stage=nowhere', 'there is no stage nowhere in a pipeline orders'],
  ['#/pipeline/orders?stage=nowhere', 'there is no stage nowhere in a pipeline orders'],
  ['#/dead?pipeline=__proto__', 'there is no pipeline __proto__'],
  ['#/run/%3Cscript%3E', 'p_query.run is "<script>", but must be a whole number'],
  ['#/run/99999999999999999999', 'must be a whole number'],
  ['#/bulk/0', 'must be a whole number'],
  ['#/status/%E2%80%AEorders', 'there is no pipeline ⟨U+202E⟩orders'],
  ['#/constructor', 'There is no such screen.'],
  ['#/%E0%A4%A', 'There is no such screen.'],
] as const;

test('each forged address is answered in words', async () => {
  const page = await operate.atMachine();
  for (const [address, said] of forged) {
    await page.goto(operate.pageUrl + address);
    await page.getByText(said).first().waitFor();
  }
});

test('a forged cursor is refused by name, beneath what was shown before', async () => {
  const page = await operate.atMachine();
  await changeAnswer(page, 'journal', (answer) => ({ ...answer, next: `1' or true --` }));
  await page.goto(`${operate.pageUrl}#/journal?cursor=1'%20or%20true%20--`);
  await page.getByRole('button', { name: 'Show older ones' }).click();
  await page.getByText(`cursor is "1' or true --", but must be what the last answer`).waitFor();
  await page.getByRole('cell', { name: 'grant' }).first().waitFor();
});

test('a reload and the way back keep each screen with what it was asked for', async () => {
  const page = await operate.atMachine();
  const way = [
    ['#/dead?pipeline=orders', 'unreadable'],
    ['#/runs?pipeline=orders&stage=read&error_code=unreadable&status=failed', 'unreadable: the file'],
    ['#/pipeline/orders?stage=read&since=2020-01-01T00%3A00%3A00Z&before=2020-01-02T00%3A00%3A00Z', 'No run matches.'],
    ['#/alerts?show=all', 'runs of orders failed'],
  ] as const;
  for (const [address, shown] of way) {
    await page.goto(operate.pageUrl + address);
    await page.getByText(shown).first().waitFor();
  }
  for (const [address, shown] of way.toReversed()) {
    await page.reload();
    await page.getByText(shown).first().waitFor();
    expect(new URL(page.url()).hash).toBe(address);
    await page.goBack();
  }
  await title(page, 'Overview');
});

test('a result of a megabyte is shown from its beginning, one of a thousand levels as far as somebody opens it', async () => {
  const page = await operate.atMachine();
  for (const [run, name] of [
    [9, /^result/],
    [10, 'the beginning of 1m bytes'],
  ] as const) {
    await page.goto(`${operate.pageUrl}#/run/${run}`);
    await page.getByRole('button', { name: /^Show attempt \d+ of price/ }).click();
    await page.getByText(name).first().click();
  }
  await page.getByText('⟨U+202E⟩cod').first().waitFor();
  expect(await page.locator('main img').count()).toBe(0);
});

/** Answers a question of the page as the project does, but for what `change` makes of it. */
async function changeAnswer(page: Page, name: string, change: (answer: Record<string, unknown>) => object) {
  await page.route(`**/millrace_${name}`, async (route) => {
    const response = await route.fetch();
    // A page that has been left meanwhile wants no answer.
    await route.fulfill({ response, json: change(await response.json()) }).catch(() => {});
  });
}

test('a stretch that is dragged on a chart, or a minute of its table, filters the runs beneath', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/pipeline/orders`);
  const box = await page.locator('.u-over').first().boundingBox();
  if (!box) throw new Error('there is no chart');
  await page.mouse.move(box.x + box.width * 0.1, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/since=.*before=/);
  await page.getByText('No run matches.').waitFor();
  await page.reload();
  await page.getByText('No run matches.').waitFor();
  await page.getByText('As a table').first().click();
  await page.getByRole('region', { name: 'By outcome' }).getByRole('button').last().click();
  await page.getByRole('region', { name: 'Runs', exact: true }).getByRole('link').first().waitFor();
  // A code may be called as what every object of JavaScript inherits.
  await changeAnswer(page, 'series', (answer) => ({
    ...answer,
    points: (answer.points as object[]).map((point, n) => ({ ...point, codes: n === 7 ? { constructor: 3 } : {} })),
  }));
  await page.reload();
  const codes = page.getByRole('figure', { name: 'Errors by code' });
  await codes.getByText('As a table').click();
  expect(await codes.getByRole('row').count()).toBe(2);
  await codes.getByRole('cell', { name: '3', exact: true }).waitFor();
});

test('a range that is chosen changes charts and sentences, and stands in the address', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/`);
  await page.getByText('Runs in the last hour:').first().waitFor();
  await page.getByRole('button', { name: '7d' }).click();
  await page
    .getByText(/Runs in the last 7 days: .* completed, .* failed.*; before that 0 completed/)
    .first()
    .waitFor();
  await page.goto(`${operate.pageUrl}#/pipeline/orders?range=24h`);
  await page.getByText('The last 24 hours, hour by hour').waitFor();
  await page.getByText('Errors of the last 24 hours').waitFor();
  expect(await page.getByRole('button', { name: '24h' }).getAttribute('aria-pressed')).toBe('true');
  await shoot(page, 'range');
});

test('a release is listed with its function and marked on the charts, and costs add up by stage, model and run', async () => {
  await operate.rows(`update millrace.stages set seen = jsonb_build_object('releases', jsonb_build_array(
    jsonb_build_object('release', '12', 'at', millrace.now()))) where name = 'price'`);
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/functions`);
  const price = page.getByRole('region', { name: 'Functions and workers' }).getByRole('row', { name: /orders-price/ });
  await price.getByText('12 since').waitFor();
  await price.getByText(/at work now|completed work [\d.]+ \S+ ago/).waitFor();
  await page.getByRole('button', { name: 'Function', exact: true }).click();
  const names = () => page.locator('td[data-label="Function"]').allInnerTexts();
  expect(await names()).toEqual([...(await names())].sort());
  await page.getByRole('button', { name: /^Function/ }).press('Enter');
  expect(await names()).toEqual([...(await names())].sort().reverse());
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=price`);
  await page.getByText(/^Released.*price 12/).waitFor();
  await page.goto(`${operate.pageUrl}#/`);
  await page.getByRole('img', { name: /of orders: .*new: .*price 12/ }).waitFor();
  await page.goto(`${operate.pageUrl}#/settings`);
  const jobs = page.getByRole('region', { name: 'Schedules' });
  await jobs.getByRole('row', { name: /millrace-prune 17 3 \* \* \* none yet .*0?3:17/ }).waitFor();
  await jobs.getByRole('row', { name: /millrace-sweep 10 seconds succeeded/ }).waitFor();
  const due = page.getByRole('region', { name: 'Due rows' });
  await due.getByRole('row', { name: 'memos embed_at none to come 0', exact: true }).waitFor();
  await changeAnswer(page, 'settings', (answer) => ({
    ...answer,
    pipelines: (answer.pipelines as { pipeline: string }[]).map((of) =>
      of.pipeline === 'memos' ? { ...of, due: { next: '2026-11-20T08:15:00Z', soon: 1001 } } : of,
    ),
  }));
  await page.reload();
  await due.getByRole('row', { name: /^memos embed_at .*0?8:15.* 1,000\+$/ }).waitFor();
  await page.goto(`${operate.pageUrl}#/costs?pipeline=orders`);
  const table = (name: string) => page.getByRole('region', { name });
  await table('By stage')
    .getByRole('row', { name: /price.*100 %/ })
    .waitFor();
  await table('By model').getByText('no model named').waitFor();
  const dearest = table('The dearest runs').getByRole('row');
  expect(await dearest.count()).toBe(21);
  await page.getByText(/What follows is of the \d+ runs of this time/).waitFor();
});

test('a project without a pipeline, one that does not answer, and one whose clock differs are told as such', async () => {
  const page = await operate.atMachine();
  await changeAnswer(page, 'overview', (answer) => ({ ...answer, pipelines: [], stages: [] }));
  await page.reload();
  await page.getByText('No pipeline yet that you see.').waitFor();
  await page.unroute('**/millrace_overview');

  const later = (time: unknown) => new Date(Date.parse(String(time)) + 3 * 3_600_000).toISOString();
  await changeAnswer(page, 'overview', (answer) => ({
    ...answer,
    now: later(answer.now),
    last_sweep_at: later(answer.now),
    well: { ok: true, faults: [], more: 0, quiet_alerts: 2, dead_last_day: '3' },
  }));
  await page.reload();
  await page.getByText('All is well').waitFor();
  await page.getByRole('link', { name: '3 died in the last day' }).waitFor();
  await page.getByRole('link', { name: '2 open alerts are silenced or no longer above their bounds' }).waitFor();
  await page.unroute('**/millrace_overview');
  await changeAnswer(page, 'overview', (answer) => ({
    ...answer,
    last_sweep_at: '-infinity',
    installed_at: answer.now,
  }));
  await page.reload();
  await page.getByText('the first sweep is due within ten seconds').waitFor();
  await page.unroute('**/millrace_overview');
  const why = 'nobody takes it up: orders-price answered 503 14 s ago: the function did not start';
  const unattended = { why, remedy: 'look at its log', function_name: 'orders-price', since: '2026-11-02T09:00:00Z' };
  const fault = { kind: 'stage', what: 'price of orders', detail: why, pipeline: 'orders', stage: 'price' };
  const finding = { kind: 'finding', what: 'no stage is misconfigured', detail: 'price of orders lacks a key' };
  const after = (now: unknown, seconds: number) => new Date(Date.parse(String(now)) + seconds * 1000).toISOString();
  const held = (now: unknown) => ({
    unattended,
    in_backoff: 4,
    backoff: { code: 'rate_limited', message: 'It asks for patience', at: after(now, -12), next_at: after(now, 300) },
  });
  const change = (answer: Record<string, unknown>, list: string, now: unknown) => ({
    ...answer,
    [list]: (answer[list] as { stage: string }[]).map((of) => (of.stage === 'price' ? { ...of, ...held(now) } : of)),
  });
  await changeAnswer(page, 'overview', (answer) => ({
    ...change(answer, 'stages', answer.now),
    well: { ok: false, faults: [fault, finding], more: 0, dead_last_day: '0' },
  }));
  await page.reload();
  await page.getByText('Not well: 2 things to see to').waitFor();
  await page.getByText(/^price of orders lacks a key \(doctor\(\) looked for: no stage is misconfigured\)$/).waitFor();
  await page.locator('.engine').getByRole('link', { name: 'price of orders' }).waitFor();
  const card = page.getByRole('region', { name: 'orders', exact: true });
  await card.getByTitle(why).getByText('nobody takes it up').waitFor();
  expect(await page.getByText(why).count(), 'said once').toBe(1);
  const waits = /4 in backoff: rate_limited \d+ s ago; the next try in \S+ min\. It asks for patience/;
  await card.getByText(waits).waitFor();
  await changeAnswer(page, 'pipeline', (answer) => change(answer, 'health', new Date().toISOString()));
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=price`);
  await page.getByText(waits).waitFor();
  await page.getByText(why).waitFor();
  const node = page.getByRole('region', { name: 'Graph of the stages' }).getByRole('link', { name: 'price' });
  await node.getByText('4 in backoff: rate_limited').waitFor();
  await page.unroute('**/millrace_pipeline');
  await page.goto(operate.pageUrl);
  await page.unroute('**/millrace_overview');

  await page.route('**/millrace_series', () => {});
  await page.reload();
  await page.getByText('Runs in the last hour: …').first().waitFor();
  expect(await page.getByText(/\d (completed|failed)/).count(), 'figures before their answer').toBe(0);
  await page.goto(`${operate.pageUrl}#/pipeline/orders`);
  await page.getByRole('region', { name: 'Stages', exact: true }).getByRole('row').nth(1).waitFor();
  expect(new Set(await page.locator('td[data-label="Spent"]').allInnerTexts())).toEqual(new Set(['–']));
  await page.goto(`${operate.pageUrl}#/functions`);
  await page.getByRole('row', { name: /orders-price/ }).waitFor();
  expect(new Set(await page.locator('td[data-label="Lost"]').allInnerTexts())).toEqual(new Set(['–']));
  await page.unroute('**/millrace_series');

  await page.route('**/millrace_limits', () => {});
  await page.goto(`${operate.pageUrl}#/limits`);
  await page.getByText('Asking the project').waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
});

test('dead letters show a sample, and what has changed since the preview is passed over, whoever of two begins', async () => {
  const [otto, adam] = [await operate.signedInAs('otto'), await operate.signedInAs('adam')];
  await otto.goto(`${operate.pageUrl}#/dead?pipeline=orders`);
  const group = otto.getByRole('row', { name: /no_address/ });
  await group.getByText('⟨U+202E⟩cod').first().waitFor();
  await group.getByText('Hint: Write the address into the order, then retry.').waitFor();
  const many = Number(await group.getByRole('link', { name: /^\d+$/ }).first().textContent());
  expect(many).toBeGreaterThan(1);
  await group.getByRole('button', { name: /^Retry/ }).click();
  await otto.getByText(`${many} runs, from`).waitFor();
  await operate.rows(
    `select millrace.retry(min(d.run_id)) from millrace.dead_letters d where d.error_code = 'no_address'`,
  );
  await adam.goto(otto.url());
  for (const page of [otto, adam]) await page.getByRole('button', { name: 'Begin', exact: true }).click();
  const begin = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Begin' }).click();
  await begin(otto);
  await otto.getByText('✓ done').waitFor();
  await otto.getByText('1 that had gone on, or matched no longer').waitFor();
  await begin(adam);
  await adam.getByRole('dialog').getByRole('alert').filter({ hasText: 'it is done' }).waitFor();
  expect(
    await operate.value(
      `select count(*)::int from millrace.journal where verb = 'begin' and subject in ('otto', 'adam')`,
    ),
  ).toBe(1);
});

test('a project that takes its time is called slow, beside the age of what it answered last', async () => {
  const page = await operate.atMachine({ isOwn: true });
  await page.clock.install();
  await page.goto(`${operate.pageUrl}#/limits`);
  await page.getByText('printer').first().waitFor();
  const held: Route[] = [];
  await page.route('**/api/millrace_limits', (route) => {
    held.push(route);
  });
  const asked = page.waitForRequest('**/api/millrace_limits');
  await page.clock.fastForward(20_000);
  await asked;
  await page.clock.fastForward(5000);
  await page.getByText(/^⚠ The project is slow to answer. What you see is 2\d s old.$/).waitFor();
  await Promise.all(held.map((route) => route.continue()));
  await page.getByText('The project is slow to answer').waitFor({ state: 'hidden' });
});

/** Answers from now on what the project answered first, at once; `window.asked` counts. */
const answerAsBefore = () => {
  const ask = window.fetch;
  const before = new Map<string, string>();
  Object.assign(window, { asked: 0 });
  window.fetch = async (address, options) => {
    (window as unknown as { asked: number }).asked += 1;
    const key = `${address} ${options?.body}`;
    if (!before.has(key)) before.set(key, await (await ask(address, options)).text());
    // A real answer takes its time, in which a clock that is turned on runs ahead.
    return Object.assign(new Response(), { json: async () => JSON.parse(before.get(key) ?? '') });
  };
};

test('a page that nobody touches asks seldom, and keeps nothing of what it heard', async () => {
  const page = await operate.atMachine({ isOwn: true });
  await page.clock.install();
  await page.reload();
  await page.locator('.spark').nth(2).waitFor();
  const cards = await page.locator('.spark').count();
  await page.evaluate(answerAsBefore);
  const chrome = await page.context().newCDPSession(page);
  const after = async (hours: number) => {
    // In steps, since what an answer sets off takes no part in a longer one.
    for (let step = 0; step < hours * 240; step += 1) await page.clock.runFor(15_000);
    await chrome.send('HeapProfiler.collectGarbage');
    const { usedSize } = await chrome.send('Runtime.getHeapUsage');
    const { nodes, jsEventListeners } = await chrome.send('Memory.getDOMCounters');
    const asked = await page.evaluate(() => Object(window).asked);
    return { usedSize, nodes, jsEventListeners, asked };
  };
  const [early, late] = [await after(1 / 6), await after(1 / 3)];
  // The overview and the alerts every half minute, the figures of each card every minute; every five minutes the figures
  // before, the quiet pipelines and the settings.
  expect(late.asked - early.asked).toBeLessThanOrEqual(2 * 40 + cards * 24 + 2 * 4);
  expect(late.nodes).toBeLessThanOrEqual(early.nodes + 50);
  expect(late.jsEventListeners).toBeLessThanOrEqual(early.jsEventListeners + 5);
  expect(late.usedSize).toBeLessThan(early.usedSize + 250_000);
});

test('a bulk whose count stops at 10,000 shows that it goes on', async () => {
  const page = await operate.atMachine();
  let known: { preview?: object } = {};
  await page.route('**/millrace_act', async (route) => {
    const response = await route.fetch();
    // A call of continue is refused, since it has not begun.
    if (response.ok()) known = await response.json();
    const preview = { ...known.preview, runs: '10,000+' };
    await route.fulfill({ json: { ...known, state: 'running', done: 1500, preview } });
  });
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed`);
  await page.getByRole('button', { name: /^Retry all/ }).click();
  await page.getByRole('progressbar', { name: '1,500 of 10,000+ runs' }).waitFor();
});

test('a bulk is tried with one run, whose outcome stands beside the button for the rest', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed`);
  await page.getByRole('button', { name: /^Retry all/ }).click();
  await page.getByRole('button', { name: 'Try one first' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Try one first' }).click();
  const outcome = page.getByRole('status').filter({ hasText: 'Tried first: run' });
  await outcome.filter({ hasText: 'is queued' }).waitFor();
  await page.getByRole('button', { name: 'Do the rest' }).waitFor();
  await isOpenToAll(page, 'tried');
  await page.getByRole('button', { name: 'Abort' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Abort' }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  expect(await operate.rows('select state, done from millrace.bulks where tried is not null')).toEqual([
    { state: 'aborted', done: 1 },
  ]);
});

test('an error is told with its hint, and with what the documents say of its code', async () => {
  const page = await operate.atMachine();
  const of = (code: string) =>
    operate.value(
      `select max(a.run_id) from millrace.attempts a join millrace.runs r on r.id = a.run_id
      where a.error ->> 'code' = $1`,
      [code],
    );
  await page.goto(`${operate.pageUrl}#/run/${await of('no_address')}`);
  await page.getByText('Hint: Write the address into the order, then retry.').waitFor();
  await page.goto(`${operate.pageUrl}#/run/${await of('rate_limited')}`);
  await page
    .getByText(
      'A service, the model or the platform answered 429. Such an attempt is retried for a day, not before its retry-after-ms or Retry-After.',
    )
    .waitFor();
});

test('a chosen stage is bypassed and taken up, and its runs are failed, skipped and reset after a preview', async () => {
  const page = await operate.atMachine();
  const dialog = page.getByRole('dialog');
  const action = (group: string, name: string) =>
    page.getByRole('region', { name: group, exact: true }).getByRole('button', { name, exact: true });
  await page.goto(`${operate.pageUrl}#/pipeline/checks?stage=ask`);
  await action('The stage', 'Bypass: No worker takes anything of a manual stage.').waitFor();
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=price`);
  await action('The stage', 'Take up: No row that a bypass left out waits for it.').waitFor();
  const queued = await operate.value(
    `select ready + in_backoff from millrace.stage_health where pipeline = 'orders' and stage = 'price'`,
  );
  await action('The stage', 'Bypass').click();
  await dialog.getByText(`What is queued here (${queued} rows)`).waitFor();
  await dialog.getByLabel('Reason').fill('the printer is away');
  await dialog.getByRole('button', { name: 'Bypass' }).click();
  await page.getByText(/^bypassed by \S+: the printer is away$/).waitFor();
  await action('The stage', 'End bypass').click();
  await dialog.getByText(`What was left out (${queued} rows)`).waitFor();
  await dialog.getByRole('button', { name: 'End bypass' }).click();
  await action('The stage', 'Take up').click();
  await dialog.getByLabel('How many at most').fill('2');
  await dialog.getByRole('button', { name: 'Take up' }).click();
  await dialog.waitFor({ state: 'hidden' });
  const waiting = await operate.value(
    `select (ready + started + waiting)::int from millrace.stage_health where pipeline = 'orders' and stage = 'ship'`,
  );
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=ship`);
  await action('Runs at the stage', 'Hurry: No retry waits for its time here.').waitFor();
  for (const verb of ['Reset', 'Skip', 'Fail']) {
    await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=ship`);
    await action('Runs at the stage', verb).click();
    await dialog.getByText(`Standing here: ${waiting}, failed here: 0.`).waitFor();
    if (verb === 'Fail') await dialog.getByLabel('The error that they get').fill('the carrier is on strike');
    await dialog.getByLabel('Reason').fill('a strike');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await page.getByText(`${verb.toLowerCase()} at ship in orders: ${waiting} runs, from`).waitFor();
  }
  await page.getByRole('button', { name: 'Begin', exact: true }).click();
  await dialog.getByRole('button', { name: 'Begin' }).click();
  await page.getByText('✓ done').waitFor();
  expect(
    await operate.value(
      `select count(*)::int from millrace.attempts where error ->> 'message' = 'the carrier is on strike'`,
    ),
  ).toBe(waiting);
});

test('a result is edited by the form of its schema, and a value that does not fit is refused where it was typed', async () => {
  const form = {
    result: { type: 'object', properties: { title: { type: 'string' }, pages: { type: 'integer', maximum: 99 } } },
  };
  await operate.rows(`select public.millrace_tell_form('orders', 'read', $1)`, [JSON.stringify(form)]);
  const [{ run } = {}] = await operate.rows(
    `with added as (insert into public.orders (name) values ('Order to edit') returning id)
     select millrace.start('orders', id::text) as run from added`,
  );
  await operate.rows(`select millrace.complete_stage($1, 'read', '{"title": "Tea", "pages": 3}')`, [run]);
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/run/${run}`);
  await page.getByRole('button', { name: /^Show attempt .* of read/ }).click();
  await page.getByRole('button', { name: 'Edit result' }).click();
  const dialog = page.getByRole('dialog', { name: 'Edit the result of read' });
  await dialog.getByLabel('title').fill('Green tea');
  await dialog.getByLabel('pages').fill('100');
  await isOpenToAll(page, 'edit');
  await dialog.getByRole('button', { name: 'Edit result' }).click();
  await dialog.getByText('result.pages is 100, but must be at most 99').waitFor();
  await dialog.getByLabel('pages').fill('4');
  await dialog.getByRole('button', { name: 'Edit result' }).click();
  await dialog.waitFor({ state: 'hidden' });
  const outputs = 'select output from millrace.attempts where run_id = $1 and state = $2 order by id desc limit 1';
  expect(await operate.rows(outputs, [run, 'completed'])).toEqual([{ output: { title: 'Green tea', pages: 4 } }]);
  await page.getByText('superseded').first().waitFor();
});

test('two tries of a stage stand side by side with signs at the lines that differ, and in a narrow window as one list', async () => {
  const [{ run } = {}] = await operate.rows(
    `with added as (insert into public.orders (name) values ('Order to compare') returning id)
     select millrace.start('orders', id::text) as run from added`,
  );
  for (const [title, model, cost, took] of [
    ['Tea', 'small', 0.004, 2],
    ['Green tea', 'large', 0.02, 5],
  ]) {
    if (title !== 'Tea') await operate.rows(`select millrace.reset($1, 'read')`, [run]);
    await operate.rows(`select millrace.complete_stage($1, 'read', $2)`, [
      run,
      JSON.stringify({ title, sort: hostile }),
    ]);
    const result = { lines: [...Array.from({ length: 20 }, (_, n) => n), title], total: 4 };
    await operate.rows(`select millrace.complete_stage($1, 'price', $2)`, [run, JSON.stringify(result)]);
    await operate.rows(
      `update millrace.attempts a set started_at = finished_at - make_interval(secs => $3), usage = jsonb_build_object(
         'model', $2::text, 'prompt', 'price@1', 'input_tokens', 900, 'output_tokens', 80, 'cost_usd', $4::numeric)
       from millrace.stages s where s.id = a.stage_id and s.name = 'price' and a.run_id = $1 and not a.superseded`,
      [run, model, took, cost],
    );
    await operate.rows(
      `insert into millrace.turns (run_id, stage_id, stage_run, seq, kind, content, attempt_id, created_at)
       select a.run_id, a.stage_id, a.number, 1, 'model', jsonb_build_object('asked', $2::text), a.id, millrace.now()
       from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where s.name = 'price' and a.run_id = $1 and not a.superseded`,
      [run, `Price this:\n${title}`],
    );
  }
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/run/${run}`);
  await page.getByRole('button', { name: 'Compare the last two of price' }).click();
  const row = (name: string) => page.getByRole('region', { name: 'What differs' }).getByRole('row', { name });
  await row('Model differs').waitFor();
  for (const [name, was, is] of [
    ['Model differs', 'small', 'large'],
    ['Version of the prompt', 'price@1', 'price@1'],
    ['Tokens in', '900', '900'],
    ['Cost differs', '$0.004', '$0.02'],
    ['Took differs', '2 s', '5 s'],
  ] as const) {
    expect(await row(name).getByRole('cell').allInnerTexts()).toEqual([expect.stringContaining(name), was, is]);
  }
  const lines = async (name: string, sign: 'deletion' | 'insertion') =>
    (await page.getByRole('group', { name, exact: true }).getByRole(sign).allInnerTexts()).map((line) =>
      line.replace(/ +/g, ' '),
    );
  expect(await lines('Input: the result of read', 'deletion')).toEqual(['− "title": "Tea"']);
  expect(await lines('Input: the result of read', 'insertion')).toEqual(['+ "title": "Green tea"']);
  expect(await lines('Prompt', 'insertion')).toEqual(['+ Green tea']);
  expect(await lines('Result', 'deletion')).toEqual(['− "Tea"']);
  expect(await lines('Result', 'insertion')).toEqual(['+ "Green tea"']);
  await page.getByText('lines alike').waitFor();
  await isOpenToAll(page, 'tries');
  await page.setViewportSize({ width: 390, height: 900 });
  const result = page.getByRole('group', { name: 'Result', exact: true });
  const left = (sign: 'deletion' | 'insertion') =>
    result.getByRole(sign).evaluate((line) => line.getBoundingClientRect());
  expect((await left('insertion')).left).toBe((await left('deletion')).left);
  expect(await result.getByText('"total": 4').filter({ visible: true }).count()).toBe(1);
  // Others are chosen by name, and the address keeps them.
  const newer = page.getByLabel('Newer try');
  await newer.selectOption({ index: 0 });
  await page.getByRole('group', { name: 'Result', exact: true }).getByText('"title": "Green tea"').waitFor();
  expect(page.url()).toMatch(/older=\d+&newer=\d+/);
});

test('what a result says that it may lack is a warning on its run and its stage', async () => {
  const run = await operate.value<string>(`select run_id from millrace.attempts where output ? 'doubts'`);
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/run/${run}`);
  const warning = page.getByRole('main').locator('p', { hasText: 'Two lines were cut.' });
  await warning.waitFor();
  expect(await warning.textContent()).toMatch(/^label ⚠ doubtful Two lines were cut\. <img/);
  const graph = page.getByRole('region', { name: 'Graph of the stages' });
  expect(await graph.getByRole('link', { name: /^label/ }).textContent()).toContain('⚠ doubtful');
  await isOpenToAll(page, 'doubts');
});

test('on a narrow window the header takes two rows, and no short word of a table is broken', async () => {
  const page = await operate.atMachine({ width: 390 });
  await page.goto(`${operate.pageUrl}#/run/1`);
  const code = page.getByRole('cell', { name: 'unreadable' }).locator('.words');
  await code.waitFor();
  expect(await code.evaluate((words) => words.getClientRects().length)).toBe(1);
  expect(await page.locator('header').evaluate((header) => header.clientHeight)).toBeLessThan(100);
  // A window that is made narrow shows where one is, too.
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`${operate.pageUrl}#/settings`);
  await title(page, 'Settings');
  await page.setViewportSize({ width: 390, height: 900 });
  const tab = page.locator('nav [aria-current]');
  await expect.poll(() => tab.evaluate((link) => link.getBoundingClientRect().right)).toBeLessThanOrEqual(390);
  // And of a graph it shows the stage that is chosen.
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=ship`);
  const node = page.getByRole('region', { name: 'Graph of the stages' }).getByRole('link', { name: /^ship/ });
  await node.waitFor();
  await expect.poll(() => node.evaluate((link) => link.getBoundingClientRect().right)).toBeLessThanOrEqual(390);
});

const playbooksFolder = path.join(import.meta.dirname, '..', '..', 'docs', 'playbooks');

/** The path that a playbook names on the operator's page, in bold and in order. */
function namedIn(playbook: string): string[] {
  const text = fs.readFileSync(path.join(playbooksFolder, `${playbook}.md`), 'utf8');
  const section = /^## On the page\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text)?.[1] ?? '';
  return [...section.matchAll(/\*\*([^*]+)\*\*/g)].map(([, name = '']) => name.replaceAll('\n', ' '));
}

describe('the playbooks', () => {
  beforeAll(() => operate.parcels());

  test('each has a walk', () => {
    const pages = fs.readdirSync(playbooksFolder).map((file) => path.basename(file, '.md'));
    expect(playbookWalks.map(({ playbook }) => playbook).toSorted()).toEqual(pages.toSorted());
  });

  test.each(playbookWalks)(
    '$playbook leads from the alert to its cause to the verb, by the keyboard alone, as its page says',
    async ({ playbook, before, alert, way, verb }) => {
      const page = await operate.atMachine();
      const alerts = page.getByRole('region', { name: 'Open alerts' }).getByRole('listitem');
      if (before) await operate.rows(before);
      const past = await operate.value<number>('select coalesce(max(id), 0)::int from millrace.journal');
      await page.goto(`${operate.pageUrl}#/`);
      await title(page, 'Overview');
      const walk = new Walk(page);
      await way(walk, alerts.filter({ hasText: alert ?? '' }));
      const lines = await operate.rows(`select verb, reason from millrace.journal where id > $1`, [past]);
      if (verb) expect(lines).toContainEqual({ verb, reason: 'as the playbook says' });
      expect(['Overview', ...walk.names]).toEqual(namedIn(playbook));
    },
  );
});

/** Of three pages with some 500 each: a thousand stages drawn whole would be ten times as many. */
const mostElements = 2000;
test('a thousand stages, a graph of sixty and a run of ten thousand children stay usable', async () => {
  const run = await operate.crowd();
  const page = await operate.atMachine();
  /** Answers a key, and has drawn no more than a browser lays out in a moment. */
  const isUsable = async () => {
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('*').count()).toBeLessThan(mostElements);
  };
  await page.getByRole('link', { name: 'wide_16', exact: true }).waitFor();
  await isUsable();
  await page.goto(`${operate.pageUrl}#/pipeline/wide_3`);
  await page.getByRole('region', { name: 'Graph of the stages' }).getByText('s_59', { exact: true }).waitFor();
  await isUsable();
  await page.goto(`${operate.pageUrl}#/run/${run}`);
  await page.getByRole('link', { name: '10k of wide_0' }).click();
  await page.getByRole('button', { name: 'Show older ones' }).waitFor();
  expect(await page.getByRole('row').count()).toBe(51);
  await isUsable();
});
