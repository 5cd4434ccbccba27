// Lists of the operator's page: filters, search, ranges, cursors and what is done to all that match.
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { changeAnswer, isOpenToAll, title } from '../support/stack/operate-page.ts';
import { OperateStack } from '../support/stack/operate-stack.ts';
import { tabTo } from '../support/stack/walk.ts';

let operate: OperateStack;
beforeAll(async () => {
  operate = await OperateStack.start();
});
afterEach(async () => {
  await operate.closeWindows();
});
afterAll(() => operate?.stop());

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

test('a filter is kept in the browser, and what no field shows is let go by a click', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed&since=2020-01-01`);
  await page.getByRole('button', { name: 'Ask for any since' }).click();
  expect(await page.getByRole('combobox', { name: 'Status' }).inputValue()).toBe('failed');
  await page.waitForURL(/status=failed$/);
  await page.getByLabel('Time', { exact: true }).selectOption('24h');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL(/status=failed&since=/);
  const since = new URLSearchParams(page.url().split('?')[1]).get('since') ?? '';
  expect(Date.now() - Date.parse(since) - 86_400_000).toBeLessThan(600_000);
  await page.getByText('18 match', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Ask for any since' }).click();
  await page.getByRole('button', { name: 'Save this filter' }).click();
  await page.getByLabel('Name').fill('what failed');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Save this filter' }).click();
  await page.getByLabel('Name').fill('the same');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'the same' }).waitFor();
  await page.getByRole('link', { name: 'Clear' }).click();
  await page.reload();
  await page.getByRole('link', { name: 'what failed' }).click();
  await page.waitForURL(/pipeline=orders&status=failed$/);
  await page.goBack();
  await page.waitForURL(/#\/runs$/);
  const focus = () =>
    page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.id);
  await page.getByRole('button', { name: 'Forget the filter what failed' }).press('Enter');
  await page.getByRole('link', { name: 'what failed' }).waitFor({ state: 'hidden' });
  expect(await focus()).toBe('Forget the filter the same');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'the same' }).waitFor({ state: 'hidden' });
  expect(await focus()).toBe('filter-pipeline');
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

test('a list finds runs by a text anywhere in them, says how many match, and claims no more than was looked at', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders`);
  await page.getByText('40 match', { exact: true }).waitFor();
  await page.getByLabel('Text', { exact: true }).fill('FILE has no');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('3 match', { exact: true }).waitFor();
  expect(await page.getByRole('row').filter({ hasText: 'the file has no text' }).count()).toBe(3);
  const all = page.getByRole('button', { name: 'Retry all …' });
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

test('runs are chosen by the keyboard alone, and Escape leads from a dialog back to its button', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/runs?pipeline=orders&status=failed`);
  const boxes = page.getByRole('checkbox', { name: /^Run \d/ });
  await boxes.nth(1).waitFor();
  for (const place of [0, 1]) {
    await page.keyboard.press('j');
    expect(await boxes.nth(place).evaluate((box) => box === document.activeElement)).toBe(true);
    await page.keyboard.press('Space');
  }
  const retry = page.getByRole('button', { name: 'Retry 2 chosen …' });
  const isThere = () => retry.evaluate((button) => button === document.activeElement);
  for (let n = 0; n < 15 && !(await isThere()); n += 1) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.getByText('2 runs, from').waitFor();
  const first = page.getByRole('button', { name: 'Try one first' });
  await tabTo(page, first);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  expect(await first.evaluate((button) => button === document.activeElement)).toBe(true);
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

test('the refusal of a forged cursor names it, below the entries that stay shown', async () => {
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

test('a stretch that is dragged on a chart, or a minute of its table, filters the runs beneath', async () => {
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/pipeline/orders`);
  const plot = page.locator('.u-over').first();
  const box = { x: 0, y: 0, width: 0 };
  // A chart is drawn anew once its marks are known.
  await expect.poll(async () => Object.assign(box, await plot.boundingBox()).width).toBeGreaterThan(0);
  await page.mouse.move(box.x + box.width * 0.1, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/since=.*before=/);
  await page.getByText('No run matches.').waitFor();
  await page.reload();
  await page.getByText('No run matches.').waitFor();
  await page.getByText('As a table').first().click();
  await page.getByRole('region', { name: 'Outcomes' }).getByRole('button').last().click();
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
  await page.getByRole('dialog').getByLabel('Reason').fill('the addresses are there');
  await page.getByRole('dialog').getByRole('button', { name: 'Try one first' }).click();
  const outcome = page.getByRole('status').filter({ hasText: 'Tried first: run' });
  await outcome.filter({ hasText: 'is queued' }).waitFor();
  expect(await outcome.textContent(), 'the code from before').not.toMatch(/no_address|unreadable/);
  await page.getByRole('button', { name: 'Do the rest' }).click();
  expect(await page.getByRole('dialog').getByLabel('Reason').inputValue()).toBe('the addresses are there');
  await page.keyboard.press('Escape');
  await isOpenToAll(page, 'tried');
  await page.getByRole('button', { name: 'Abort' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Abort' }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  expect(await operate.rows('select state, done from millrace.bulks where tried is not null')).toEqual([
    { state: 'aborted', done: 1 },
  ]);
  const runs = page.getByRole('link', { name: 'Runs of orders' });
  await runs.waitFor();
  expect(await page.getByRole('button', { name: /^(Do the rest|Try another|Abort)/ }).count()).toBe(0);
  expect(await runs.evaluate((link) => link === document.activeElement), 'the focus').toBe(true);
});
