// The screens of the operator's page in a real Chromium, on a real stack: what each says, to whom and at what width.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import type { Locator, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { remedyRows } from '../../operators/remedies.ts';
import { changeAnswer, isOpenToAll, shoot, title } from '../support/stack/operate-page.ts';
import { OperateStack } from '../support/stack/operate-stack.ts';

let operate: OperateStack;
beforeAll(async () => {
  operate = await OperateStack.start();
});
afterEach(async () => {
  await operate.closeWindows();
});
afterAll(() => operate?.stop());

/** Screens with something on them to wait for. */
const screens: [name: string, address: string, shown: string][] = [
  ['overview', '#/', 'no_address'],
  ['pipeline', '#/pipeline/orders?stage=invoice', 'Errors of the last hour'],
  ['runs', '#/runs?pipeline=orders&status=failed', 'unreadable'],
  ['run', '#/run/1', 'Origins of the results'],
  ['dead', '#/dead', 'no_address'],
  ['alerts', '#/alerts', 'no_address'],
  ['status', '#/status/page_links?value=new', 'Rows, the oldest first'],
  ['functions', '#/functions', 'orders-ship'],
  ['costs', '#/costs', 'The dearest runs'],
  ['limits', '#/limits', 'printer'],
  ['settings', '#/settings', 'not in Vault'],
  ['versions', '#/settings/orders', 'Changes from version 1 to 2'],
  ['journal', '#/journal', 'grant'],
];

const builtFolder = path.join(import.meta.dirname, '..', '..', 'pages', 'dist', 'operate');

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

test('the page has every code of docs/errors.md that the commands explain', () => {
  const script = fs.readdirSync(builtFolder).map((name) => fs.readFileSync(path.join(builtFolder, name), 'utf8'));
  const page = fs.readFileSync(path.join(import.meta.dirname, '../../docs/errors.md'), 'utf8');
  const codes = remedyRows(page).flatMap((row) => /`([^`]+)`/.exec(row)?.[1] ?? []);
  expect(codes).toContain('projection_failed');
  expect(codes.filter((code) => !script.join().includes(code))).toEqual([]);
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

test('the texts of rows and errors are shown as text, with hidden and turning characters made visible', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed&error_code=no_address`);
  const shown = '<img src=x onerror="document.title=1"><b>Tea</b>⟨U+202E⟩cod⟨U+0007⟩';
  await page.getByText(shown).first().waitFor();
  expect(await page.locator('main b, main img').count()).toBe(0);
});

test('a stage shows its newest error whole, with its hint, above its actions and charts', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=invoice`);
  const error = page.getByRole('region', { name: 'Newest dead letter' });
  await error.getByText(/^\d+ dead, the newest by no_address$/).waitFor();
  await error.getByText('Write the address into the order, then retry.').waitFor();
  const top = async (of: Locator) => (await of.boundingBox())?.y ?? Number.NaN;
  expect(await top(error)).toBeLessThan(await top(page.getByRole('region', { name: 'The stage', exact: true })));
  await error.getByRole('link').click();
  await title(page, /^Run/);
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

test('a range that is chosen changes charts and sentences, and stands in the address', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/`);
  await page.getByText('Runs in the last hour:').first().waitFor();
  await page.getByRole('button', { name: '7d' }).click();
  await page
    .getByText(/Runs in the last 7 days: .* completed, .* failed/)
    .first()
    .waitFor();
  await page.goto(`${operate.pageUrl}#/pipeline/orders?range=24h`);
  await page.getByText('The last 24 hours, hour by hour').waitFor();
  await page.getByText('Errors of the last 24 hours').waitFor();
  expect(await page.getByRole('button', { name: '24h' }).getAttribute('aria-pressed')).toBe('true');
  await shoot(page, 'range');
  // A range whose last step has no sample yet.
  await operate.rows(`insert into millrace.sums (unit, pipeline_id, stage_id, at, outcome, n, wait_ms)
    select 'hour', id, 0, date_trunc('hour', millrace.now() - interval '3 hours', 'UTC'), 'ready', 4321, 90000
    from millrace.pipelines where name = 'orders'`);
  await page.reload();
  for (const [name, value] of [
    [/^Backlog, /, '4,321'],
    ['Age of the oldest ready row', '1.5 min'],
  ] as const) {
    const chart = page.getByRole('figure', { name });
    await chart.getByText('As a table').click();
    await chart.getByRole('cell', { name: value, exact: true }).waitFor();
  }
});

test('a chart of days names each day once', async () => {
  const page = await operate.atMachine({ isOwn: true });
  await page.evaluate(() => {
    const drawn = new Map<HTMLCanvasElement, string[]>();
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    Object.assign(CanvasRenderingContext2D.prototype, {
      clearRect(this: CanvasRenderingContext2D, ...at: Parameters<typeof clearRect>) {
        drawn.set(this.canvas, []);
        clearRect.apply(this, at);
      },
      fillText(this: CanvasRenderingContext2D, ...what: Parameters<typeof fillText>) {
        drawn.get(this.canvas)?.push(what[0]);
        fillText.apply(this, what);
      },
    });
    Object.assign(window, {
      days: () =>
        [...document.querySelectorAll('canvas')].map((canvas) =>
          (drawn.get(canvas) ?? []).filter((text) => /^\d+ [A-Z][a-z]+$/.test(text)),
        ),
    });
  });
  const days = () => page.evaluate(() => Object(window).days() as string[][]);
  for (const address of ['#/costs?range=7d', '#/costs?range=30d', '#/pipeline/orders?range=7d']) {
    await page.goto(operate.pageUrl + address);
    await expect.poll(async () => (await days()).some((all) => all.length > 2), { message: address }).toBe(true);
    for (const all of await days()) expect(all, address).toEqual([...new Set(all)]);
  }
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
  await page.getByText(/^Releases.*price 12/).waitFor();
  await page.getByText('Effects of a change of price').click();
  const made = page.getByRole('region', { name: 'Effects of a change' });
  await made.getByRole('row', { name: /\$\d/ }).first().waitFor();
  await page.getByText(/^Of the newest \d+ runs, where/).waitFor();
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
  await table('By pipeline')
    .getByRole('row', { name: /orders.*100 %/ })
    .waitFor();
  await table('By model').getByText('no model named').waitFor();
  await table('By tenant').getByText('no tenant named').waitFor();
  await page.getByText(/^Releases.*price 12/).waitFor();
  const dearest = table('The dearest runs').getByRole('row');
  expect(await dearest.count()).toBe(21);
  await page.getByText(/^Of the \d+ runs of this time/).waitFor();
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
  await page.getByRole('link', { name: 'Dead letters of the last day: 3' }).waitFor();
  await page.getByText('2 open alerts are silenced or no longer above their bounds: alerts').waitFor();
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
  await page.getByText('Not well: 2 faults').waitFor();
  await page.getByText(/^price of orders lacks a key \(doctor\(\) looked for: no stage is misconfigured\)$/).waitFor();
  await page.locator('.engine').getByRole('link', { name: 'price of orders' }).waitFor();
  const card = page.getByRole('region', { name: 'orders', exact: true });
  await card.getByTitle(why).getByText('nobody takes it up').waitFor();
  expect(await page.getByText(why).count(), 'said once').toBe(1);
  const waits = /4 in backoff: rate_limited \d+ s ago; the next try in \S+ min\. It asks for patience/;
  await card.getByText(waits).waitFor();
  await changeAnswer(page, 'pipeline', (answer) => change(answer, 'health', new Date().toISOString()));
  await page.goto(`${operate.pageUrl}#/pipeline/orders?stage=price`);
  const error = page.getByRole('region', { name: 'Newest error in backoff' });
  await error.getByText(/^4 in backoff: rate_limited \d+ s ago; the next try in \S+ min$/).waitFor();
  await error.getByText('the model asks for patience').waitFor();
  await error.getByText(/answered 429\. Such an attempt is retried for a day/).waitFor();
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
  expect(new Set(await page.locator('td[data-label="Lost leases"]').allInnerTexts())).toEqual(new Set(['–']));
  await page.unroute('**/millrace_series');

  await page.route('**/millrace_limits', () => {});
  await page.goto(`${operate.pageUrl}#/limits`);
  await page.getByText('Asking the project').waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
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

test('the doubts of a result are a warning on its run and its stage', async () => {
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
  await page.goto(`${operate.pageUrl}#/functions`);
  await page.getByRole('button', { name: /^Show more of \d/ }).waitFor();
  expect(await page.getByRole('row').count()).toBe(51);
  await isUsable();
  await page.getByRole('button', { name: /^Show more of \d/ }).click();
  expect(await page.getByRole('row').count()).toBe(101);
  await page.getByLabel('Pipeline, stage or function').fill('wide_3 s_59');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByRole('row').count()).toBe(2);
  await page.goto(`${operate.pageUrl}#/run/${run}`);
  await page.getByRole('link', { name: '10k of wide_0' }).click();
  await page.getByRole('button', { name: 'Show older ones' }).waitFor();
  expect(await page.getByRole('row').count()).toBe(51);
  await isUsable();
});
