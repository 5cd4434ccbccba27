// The review page in a real Chromium, on a real stack: curators open, edit, approve and reject, with the keyboard too. The leads' page
// beside it.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { pageLink } from '../../local/platform/page-link.ts';
import { reviewLink } from '../../local/platform/review-link.ts';
import { barriers } from '../support/stack/barriers.ts';
import { ReviewStack } from '../support/stack/review-stack.ts';

let review: ReviewStack;
beforeAll(async () => {
  review = await ReviewStack.start();
});
afterEach(async () => {
  await review.closeWindows();
  await review.expectSound();
});
afterAll(() => review?.stop());

const heading = (page: Page) => page.getByRole('article').getByRole('heading', { level: 2 });
const code = (page: Page) => page.locator('#code').textContent();
const told = (page: Page, text: string | RegExp) => page.getByRole('status').filter({ hasText: text }).waitFor();
const refused = (page: Page, text: string | RegExp) => page.getByRole('alert').filter({ hasText: text }).waitFor();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const shoot = async (page: Page, name: string) => {
  const folder = process.env.SCREENSHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
};

async function open(page: Page, title: string): Promise<void> {
  await page.getByRole('link', { name: '300 pending review' }).click();
  await page.getByRole('link', { name: title, exact: true }).click();
  await expect.poll(() => heading(page).textContent()).toBe(title);
}

/** From here on the page does not find out by itself what others do, as in a window that nobody sees. */
const stopLooking = (page: Page) =>
  page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true });
  });

/** Lets the page look at once, as when somebody comes back to its window, instead of within seconds. */
const lookNow = (page: Page) => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));

/** The element that has the focus, by its tag and text. */
const focused = (page: Page) =>
  page.evaluate(() => `${document.activeElement?.tagName.toLowerCase()} ${document.activeElement?.textContent ?? ''}`);

/** Presses Tab until the focus is on what is called so; fails when it does not come there. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let step = 0; step < 40; step++) {
    await page.keyboard.press('Tab');
    if ((await focused(page)).includes(name)) return;
  }
  throw new Error(`Tab does not lead to ${name}`);
}

test('with the keyboard alone a curator signs in, opens an article, edits and approves it', async () => {
  const id = await review.article('Weavers of the valley');
  const page = await review.visit();
  await shoot(page, 'sign-in');
  expect(await focused(page)).toBe('h2 Sign in');
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).value)).toBe(review.stack.apiUrl);
  await page.keyboard.press('Tab');
  await page.keyboard.type(review.stack.publishableKey);
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await page.keyboard.insertText(await review.token('rick'));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await told(page, 'Signed in as rick.');
  expect(await focused(page)).toBe('h2 300 pending review');
  await shoot(page, 'list');

  await tabTo(page, 'Weavers of the valley');
  await page.keyboard.press('Enter');
  await expect.poll(() => focused(page)).toBe('h2 Weavers of the valley');
  for (const [button, message] of [
    ['Open', 'Opened.'],
    ['Edit', 'You can edit the text now.'],
  ] as const) {
    await tabTo(page, button);
    await page.keyboard.press('Enter');
    await told(page, message);
    expect(await focused(page)).toBe('h2 Weavers of the valley');
  }
  await page.keyboard.press('Tab');
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('Weavers of two valleys');
  await shoot(page, 'edit');
  await page.keyboard.press('Enter');
  await told(page, 'Saved.');
  await tabTo(page, 'Save and approve');
  await page.keyboard.press('Space');
  await told(page, 'Saved and approved.');
  expect(await review.codes(id)).toEqual([310, 320, 330]);
  const row = page.locator('#history tbody tr').first();
  expect(await row.getByRole('cell').allTextContents()).toEqual([
    expect.any(String),
    '320 editing',
    '330 approved',
    'rick',
    expect.stringMatching(/\d m?s$/),
    'title: Weavers of the valley → Weavers of two valleys',
  ]);
  await shoot(page, 'approved');
});

test('the markup in a title is shown as text, never as a part of the page', async () => {
  const title = '<img src=x onerror="document.title=1"><b>Looms</b> & more';
  await review.article(title, {
    summary: '<script>document.title = 2</script>',
    url: 'https://looms.test/a?b=1&c="2"',
  });
  const { page } = await review.curator('rick');
  await open(page, title);
  expect(await page.locator('#summary').textContent()).toBe('<script>document.title = 2</script>');
  expect(await page.locator('main b, main script').count()).toBe(0);
  const image = page.getByRole('img', { name: 'Thumbnail of' });
  await expect.poll(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBe(1);
  expect(await page.title()).toContain(title);
});

test('a token that has run out is renewed once, for all that is asked at that moment', async () => {
  await review.article('Looms by night');
  await review.curatorWithPassword('ruth');
  const page = await review.visit();
  let renewals = 0;
  page.on('request', (request) => {
    renewals += request.url().includes('grant_type=refresh_token') ? 1 : 0;
  });
  await page.getByLabel('Publishable key').fill(review.stack.publishableKey);
  await page.getByLabel('e-mail and password').check();
  await page.getByLabel('E-mail', { exact: true }).fill('ruth@looms.test');
  await page.getByLabel('Password', { exact: true }).fill('secret');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await told(page, 'Signed in as ruth.');
  const old = await page.evaluate(() => JSON.parse(sessionStorage.getItem('millrace.session') ?? '{}').token);
  await page.route('**/rest/v1/**', async (route) => {
    const { authorization } = await route.request().allHeaders();
    if (authorization === `Bearer ${old}`) await route.fulfill({ status: 401, json: { message: 'JWT expired' } });
    else await route.fallback();
  });
  await open(page, 'Looms by night');
  expect(renewals).toBe(1);
  await page.reload();
  await expect.poll(() => focused(page)).toBe('h2 Looms by night');
});

test('a review and an edit that were cancelled are tried again where they can go on', async () => {
  const id = await review.article('Looms that were left');
  const stop = () =>
    review.rows(`select millrace.cancel(id) from millrace.runs where entity_id = $1 and status = 'running'`, [id]);
  const { page } = await review.curator('rick');
  await open(page, 'Looms that were left');
  await press(page, 'Open');
  await told(page, 'Opened.');
  await stop();
  await lookNow(page);
  await press(page, 'Try again');
  await expect.poll(() => code(page)).toBe('300 pending review');
  for (const name of ['Open', 'Approve']) await press(page, name);
  await told(page, 'Approved.');
  await review.publish(id);
  await lookNow(page);
  await press(page, 'Edit');
  await told(page, 'You can edit the text now.');
  await stop();
  await lookNow(page);
  await press(page, 'Try again');
  await press(page, 'Save and publish again');
  await expect.poll(() => code(page)).toBe('410 updated');
});

test('a curator rejects, looks again, puts back; each is a code that the article had', async () => {
  const id = await review.article('A recipe for soup');
  const { page } = await review.curator('rick');
  await open(page, 'A recipe for soup');
  for (const [button, now] of [
    ['Open', '310 in review'],
    ['Reject', '540 rejected'],
    ['Look at it again', '300 pending review'],
    ['Open', '310 in review'],
    ['Put back', '300 pending review'],
  ] as const) {
    await press(page, button);
    await expect.poll(() => code(page)).toBe(now);
  }
  expect(await review.codes(id)).toEqual([310, 540, 300, 310, 300]);
  await page.getByRole('link', { name: 'Back to 300 pending review' }).click();
  await expect.poll(() => focused(page)).toBe('h2 300 pending review');
});

test('the stages of an open article are shown as they move', async () => {
  const id = await review.article('News of stages');
  const { page, token } = await review.curator('stan');
  await open(page, 'News of stages');
  await press(page, 'Open');
  await press(page, 'Approve');
  const stages = page.getByRole('list', { name: 'Stages' });
  await stages.getByText('publish queued').waitFor();
  // A sign-in after the session's end brings another token, with which the watch goes on.
  await page.route('**/rest/v1/**', (route) =>
    route.request().headers().authorization === `Bearer ${token}` ? route.fulfill(expired) : route.continue(),
  );
  const again = page.getByRole('dialog', { name: 'Your session has ended' });
  await again.getByRole('radio', { name: 'access token' }).check();
  await again.getByRole('textbox', { name: 'Access token' }).fill(await review.token('stan'));
  await again.getByRole('button', { name: 'Sign in' }).click();
  await again.waitFor({ state: 'hidden' });
  await review.publish(id);
  await stages.getByText('publish completed').waitFor();
  expect(await barriers(page)).toEqual([]);
  await shoot(page, 'review-stages');
});

const leadOf = (page: Page, email: string) => page.getByRole('listitem', { name: email });
const stagesOf = (page: Page, email: string) =>
  leadOf(page, email).getByRole('list', { name: 'Stages' }).getByRole('listitem').allInnerTexts();
/** The stages of a lead on the leads' page, each with its state. */
const states = (page: Page, email: string) =>
  expect.poll(async () => (await stagesOf(page, email)).map((text) => text.split(/\s+/).slice(0, 2).join(' ')), {
    timeout: 30_000,
  });

test('the leads’ page shows each stage of the account’s leads move, and starts them again', async () => {
  const account = randomUUID();
  const id = await review.lead(account, 'office@looms.test');
  const other = await review.lead(account, 'office@reeds.test');
  await review.lead(randomUUID(), 'office@foreign.test');
  const page = await review.visit(await pageLink(review.stack, 'leads', { account_id: account }));
  const names = ['scrape', 'intel', 'strategy', 'subject', 'messaging'];
  await states(page, 'office@looms.test').toEqual(names.map((name) => `${name} pending`));
  expect(await page.getByText('office@foreign.test').count()).toBe(0);
  await page.evaluate(() => Object.assign(window, { isSame: true }));

  await review.rows(`update leads set scrape_status = 'queued' where account_id = $1`, [account]);
  await states(page, 'office@looms.test').toEqual(names.map((name, n) => `${name} ${n ? 'pending' : 'queued'}`));
  await review.workLead(id, 'scrape');
  await states(page, 'office@looms.test').toContain('intel queued');
  await review.rows(
    `select millrace.fail_stage(id, 'scrape', 'The site is gone.', true) from millrace.runs where entity_id = $1`,
    [other],
  );
  await states(page, 'office@reeds.test').toContain('scrape failed');
  await leadOf(page, 'office@reeds.test').getByText('The site is gone.').waitFor();
  await page.getByText('1 of 2 leads done').waitFor();
  await shoot(page, 'leads-moving');

  await review.workLead(id, 'intel', { company_name: 'Looms of the valley' });
  for (const stage of ['strategy', 'subject']) await review.workLead(id, stage);
  await review.workLead(id, 'messaging', { subject: 'Looms for you', body: 'We weave.', call_to_action: 'Write.' });
  await page.getByRole('heading', { name: 'Looms of the valley' }).waitFor();
  await page.getByText('Looms for you').click();
  await page.getByText('We weave.').waitFor();
  await states(page, 'office@looms.test').toEqual(names.map((name) => `${name} completed`));
  expect(await barriers(page)).toEqual([]);
  await shoot(page, 'leads-done');
  await page.setViewportSize({ width: 390, height: 800 });
  await shoot(page, 'leads-narrow');
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await press(page, 'Run again: office@looms.test');
  await states(page, 'office@looms.test').toContain('scrape queued');
  expect(await page.evaluate(() => 'isSame' in window)).toBe(true);
});

test('the leads’ page says what is wrong: no link, or one that has run out', async () => {
  const page = await review.visit(`${review.stack.apiUrl}/leads/`);
  await page.getByText('Nobody is signed in here').waitFor();
  const token = await review.token('late', { exp: Math.floor(Date.now() / 1000) - 60 });
  const link = new URLSearchParams({ key: review.stack.publishableKey, token });
  const late = await review.visit(`${review.stack.apiUrl}/leads/#${link}`);
  await refused(late, 'JWT expired');
  await late.getByText('start it again and open the link').waitFor();
});

test('of two curators the slower one is told who was faster, and changes nothing', async () => {
  const id = await review.article('News of dyes');
  const rick = await review.curator('rick');
  const ann = await review.curator('ann');
  await open(rick.page, 'News of dyes');
  await press(rick.page, 'Open');
  await told(rick.page, 'Opened.');
  await ann.page.goto(`${review.pageUrl}#/article/${id}`);
  await expect.poll(() => code(ann.page)).toBe('310 in review');
  expect(await ann.page.locator('#since').textContent()).toContain('by rick');
  // Nobody looks meanwhile: the write itself must find out.
  await stopLooking(ann.page);
  await press(rick.page, 'Approve');
  await told(rick.page, 'Approved.');
  await press(ann.page, 'Reject');
  await refused(ann.page, 'rick was faster: the article is 330 approved now.');
  expect(await code(ann.page)).toBe('330 approved');
  expect(await review.codes(id)).toEqual([310, 330]);
  await shoot(ann.page, 'faster');
});

test('a curator who only looks hears of what another one does', async () => {
  await review.article('News of spindles');
  const rick = await review.curator('rick');
  const ann = await review.curator('ann');
  await open(rick.page, 'News of spindles');
  await open(ann.page, 'News of spindles');
  await press(rick.page, 'Open');
  await told(ann.page, 'rick: the article is 310 in review now.');
  expect(await code(ann.page)).toBe('310 in review');
});

test('of two who edit one text, the later keeps what was written and sees what the other saved', async () => {
  const id = await review.article('News of wheels');
  const rick = await review.curator('rick');
  const ann = await review.curator('ann');
  await open(rick.page, 'News of wheels');
  await press(rick.page, 'Open');
  await told(rick.page, 'Opened.');
  await press(rick.page, 'Edit');
  await told(rick.page, 'You can edit');
  await ann.page.goto(`${review.pageUrl}#/article/${id}`);
  await ann.page.getByLabel('Title').fill('Wheels, by Ann');
  await stopLooking(ann.page);
  await rick.page.getByLabel('Title').fill('Wheels, by Rick');
  await press(rick.page, 'Save');
  await told(rick.page, 'Saved.');
  await press(ann.page, 'Save');
  await refused(ann.page, 'Somebody else has saved another text meanwhile.');
  expect(await review.value('select title from public.ingestion_queue where id = $1', [id])).toBe('Wheels, by Rick');
  const box = ann.page.getByRole('region', { name: 'Your unsaved text' });
  expect(await box.getByRole('definition').allTextContents()).toEqual(['Wheels, by Ann', 'Wheels, by Rick']);
  expect(await ann.page.getByLabel('Title').inputValue()).toBe('Wheels, by Ann');
  await shoot(ann.page, 'two-texts');
  await press(ann.page, 'Save');
  await told(ann.page, 'Saved.');
  expect(await review.value('select title from public.ingestion_queue where id = $1', [id])).toBe('Wheels, by Ann');
});

test('a refusal of the project is shown with the remedy, and the text that was written stays', async () => {
  await review.article('News of felt');
  const { page } = await review.curator('rick');
  await open(page, 'News of felt');
  await press(page, 'Open');
  await told(page, 'Opened.');
  await press(page, 'Edit');
  await page.getByLabel('Title').fill('');
  await page.getByLabel('Summary').fill('Written for long');
  await press(page, 'Save');
  await refused(page, /title of article .* was emptied/);
  await refused(page, 'Write what it should be');
  expect(await page.getByLabel('Summary').inputValue()).toBe('Written for long');
  await shoot(page, 'refused');
});

test('a published article is edited while the site keeps its text, discarded, edited again and published', async () => {
  const id = await review.article('News of silk');
  const { page } = await review.curator('rick');
  await open(page, 'News of silk');
  for (const button of ['Open', 'Approve']) {
    await press(page, button);
    await told(page, button === 'Open' ? 'Opened.' : 'Approved.');
  }
  await review.publish(id);
  await lookNow(page);
  await told(page, 'the article is 400 published now.');
  for (const [last, now] of [
    ['Discard the edit', '400 published'],
    ['Save and publish again', '410 updated'],
  ] as const) {
    await press(page, 'Edit');
    await page.getByLabel('Tags').fill('silk, yarn,, silk');
    await press(page, last);
    await expect.poll(() => code(page)).toBe(now);
  }
  const { field_changes } = (
    await review.rows('select field_changes from public.publication_edit_history where queue_id = $1', [id])
  )[0] as { field_changes: unknown };
  expect(field_changes).toEqual({ tags: { old: ['wool', 'looms'], new: ['silk', 'yarn'] } });
  await shoot(page, 'history');

  // The site has the new text now: an edit that is discarded takes that one back.
  await review.publish(id, 'republish');
  await press(page, 'Edit');
  await page.getByLabel('Title').fill('A draft');
  await press(page, 'Save');
  await told(page, 'Saved.');
  await press(page, 'Discard the edit');
  await expect.poll(() => code(page)).toBe('410 updated');
  await review.publish(id, 'republish');
  expect(await review.rows('select title, tags from public.publication where queue_id = $1', [id])).toEqual([
    { title: 'News of silk', tags: ['silk', 'yarn'] },
  ]);
  expect(
    await review.value('select count(*)::int from public.publication_edit_history where queue_id = $1', [id]),
  ).toBe(1);
});

test('another user sees the articles that they have added, and nothing to decide', async () => {
  const token = await review.token('', { email: 'ann@example.com' });
  const url = 'https://looms.test/mine';
  const answer = await fetch(`${review.stack.apiUrl}/rest/v1/ingestion_queue`, {
    method: 'POST',
    headers: {
      apikey: review.stack.publishableKey,
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ url, entry_type: 'manual', title: 'Mine' }),
  });
  expect(answer.status).toBe(201);
  const { page } = await review.signedInAt(token);
  await page.getByText('You see the articles that you have added').waitFor();
  await page.getByRole('link', { name: '110 to fetch' }).click();
  await page.getByRole('link', { name: 'Mine' }).click();
  await page.getByText('There is nothing to decide here.').waitFor();
  expect(await page.getByRole('navigation').textContent()).toContain('300 pending review 0');
});

test('the page works from any other host, and says what is wrong with a key, a token or an address', async () => {
  const page = await review.visit(review.pageUrl.replace('127.0.0.1', 'localhost'));
  const attempt = async (address: string, key: string, token: string) => {
    await page.getByLabel('Address of the project').fill(address);
    await page.getByLabel('Publishable key').fill(key);
    await page.getByRole('radio', { name: 'access token' }).check();
    await page.getByRole('textbox', { name: 'Access token' }).fill(token);
    await press(page, 'Sign in');
  };
  const { apiUrl, publishableKey } = review.stack;
  const token = await review.token('rick');
  await attempt('http://127.0.0.1:9', publishableKey, token);
  await refused(page, 'The project does not answer.');
  await attempt(apiUrl, publishableKey, 'no token');
  await refused(page, 'This is no access token.');
  await attempt(apiUrl, 'wrong', token);
  await refused(page, 'Invalid API key');
  await attempt(apiUrl, publishableKey, token);
  await told(page, 'Signed in as rick.');
  await page.reload();
  await page.getByRole('heading', { name: '300 pending review' }).waitFor();
  await press(page, 'Sign out');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

const expired = { status: 401, json: { code: 'PGRST301', message: 'JWT expired' } };

test('a link brings key and token; once the session has ended the page asks to sign in again', async () => {
  const page = await review.visit(await reviewLink(review.stack, 'rick'));
  expect(new URL(page.url()).hash).toBe('');
  await press(page, 'Sign in');
  await told(page, 'Signed in as rick.');
  await page.route('**/rest/v1/**', (route) => route.fulfill(expired));
  await page.goto(`${review.pageUrl}#/400`);
  await refused(page, 'Your session has ended. Sign in again to go on.');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
});

test('signed in with a password, the page gets a new token once the old one has ended', async () => {
  await review.curatorWithPassword('rosa');
  const page = await review.visit();
  await page.getByLabel('Publishable key').fill(review.stack.publishableKey);
  await page.getByLabel('e-mail and password').check();
  await page.getByLabel('E-mail', { exact: true }).fill('rosa@looms.test');
  await page.getByLabel('Password', { exact: true }).fill('secret');
  // A project without Auth.
  await page.route('**/auth/v1/token?*', (route) => route.fulfill({ status: 404, json: {} }), { times: 1 });
  await press(page, 'Sign in');
  await refused(page, 'This project takes no passwords.');
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === '/auth/v1/token') asked.push(searchParams.get('grant_type') ?? '');
  });
  await press(page, 'Sign in');
  await told(page, 'Signed in as rosa.');
  await page.route('**/rest/v1/**', (route) => route.fulfill(expired), { times: 1 });
  await page.getByRole('link', { name: '400 published' }).click();
  await page.getByRole('heading', { name: '400 published' }).waitFor();
  await expect.poll(() => asked).toEqual(['password', 'refresh_token']);
});

test('a session that ends leaves what is typed, and nothing of the page is a barrier, light or dark', async () => {
  await review.article('News of linen');
  const { page, token } = await review.curator('rick');
  const found: string[] = [];
  const lookForBarriers = async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      // Dark differs from light in its colours alone.
      found.push(...(await barriers(page, colorScheme === 'dark')));
    }
  };
  await lookForBarriers();
  await open(page, 'News of linen');
  await press(page, 'Open');
  await told(page, 'Opened.');
  await lookForBarriers();
  await press(page, 'Edit');
  await page.getByLabel('Title').fill('Linen, by Rick');
  await lookForBarriers();
  await page.route('**/rest/v1/**', (route) => route.fulfill(expired));
  await press(page, 'Save');
  const again = page.getByRole('dialog', { name: 'Your session has ended' });
  await again.getByRole('radio', { name: 'access token' }).check();
  await again.getByRole('textbox', { name: 'Access token' }).fill(token);
  await lookForBarriers();
  await page.unroute('**/rest/v1/**');
  await again.getByRole('button', { name: 'Sign in' }).click();
  await again.waitFor({ state: 'hidden' });
  await press(page, 'Save');
  await told(page, 'Saved.');
  expect(await heading(page).textContent()).toBe('Linen, by Rick');
  expect(found).toEqual([]);
});

test('the stack serves the files of its pages and no others', async () => {
  const get = (path: string) => fetch(`${review.stack.apiUrl}${path}`, { redirect: 'manual' });
  expect((await get('/review')).headers.get('location')).toBe('/review/');
  const script = /src="\.\/([^"]+)"/.exec(await (await get('/review/')).text())?.[1];
  expect((await get(`/review/${script}`)).headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  for (const path of [
    '/review/..%2f..%2fpackage.json',
    '/review/none.js',
    '/other/',
    '/pages/review/index.html',
    '/..%2fpackage.json',
  ]) {
    expect((await get(path)).status, path).toBe(404);
  }
});
