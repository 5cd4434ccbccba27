// Actions of people on the operator's page: each with its reason, and the playbooks by the keyboard alone.
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isOpenToAll, title } from '../support/stack/operate-page.ts';
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

test('a viewer finds each action refused, with the reason, whoever leaves the overview before its answer too', async () => {
  const page = await operate.signedInAs('vera');
  await page.route(/millrace_overview/, (route) => page.url().includes('#/pipeline') && route.continue());
  await page.reload();
  await title(page, 'Overview');
  await page.goto(`${operate.pageUrl}#/pipeline/orders`);
  const pause = page.getByRole('button', { name: 'Pause: You may read here, but not act.', exact: true });
  expect(await page.getByRole('button', { name: /^Unpause/ }).count()).toBe(0);
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
  expect(await page.getByRole('link', { name: 'playbook' }).first().getAttribute('href')).toMatch(
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
  await page.getByText('$0 of $5.00').first().waitFor();
  await page.getByRole('row', { name: /links\.route_job .*turns for each host of canonical_url/ }).waitFor();
  expect(await page.getByText(/\bnan\b|undefined/i).count()).toBe(0);
  expect(await page.getByRole('button', { name: /^Unthrottle/ }).count()).toBe(0);
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
  await row.getByRole('button', { name: 'Throttle', exact: true }).waitFor();
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
  await page.getByText(/^ask waits for a person: select public\.millrace_decide\(\d+, ANSWER\) answers/).waitFor();
});

test('a queued run says who has paused its stage or pipeline and why, and leads to where the pause ends', async () => {
  const pause = (stage: string | null, verb: string) =>
    operate.rows(`select public.millrace_act($1)`, [
      JSON.stringify({ verb, pipeline: 'orders', ...(stage && { stage }), operator: 'ann', reason: 'legal reads it' }),
    ]);
  const [{ run } = {}] = await operate.rows(
    `with added as (insert into public.orders (name) values ('Order to pause') returning id)
     select millrace.start('orders', id::text) as run from added`,
  );
  await pause('read', 'pause');
  const page = await operate.atMachine();
  await page.goto(`${operate.pageUrl}#/run/${run}`);
  await page.getByText(/^read is paused( by \w+)?: legal reads it\. Unpause at read lets it go on\.$/).waitFor();
  await pause('read', 'unpause');
  await pause(null, 'pause');
  await page.reload();
  await page.getByText(/^orders is paused( by \w+)?: legal reads it\. Unpause at orders lets/).waitFor();
  await pause(null, 'unpause');
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
  await dialog.getByText(`Queued here now: ${queued} rows.`).waitFor();
  await dialog.getByLabel('Reason').fill('the printer is away');
  await dialog.getByRole('button', { name: 'Bypass' }).click();
  await page.getByText(/^bypassed by \S+: the printer is away$/).waitFor();
  await action('The stage', 'End bypass').click();
  await dialog.getByText(`what was left out (${queued} rows)`).waitFor();
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
  await page.getByRole('button', { name: 'Edit result' }).waitFor();
  expect(await page.evaluate(() => document.activeElement?.textContent), 'the focus').toContain('Edit result');
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
  await page.getByRole('button', { name: /^Show attempt .* of read/ }).click();
  await page.getByRole('button', { name: 'Edit result' }).click();
  await dialog.getByLabel('title').fill('Black tea');
  await dialog.getByRole('button', { name: 'Try on a copy' }).click();
  await page.getByText('with read edited, writes no column').waitFor();
  await page
    .getByRole('link', { name: `run ${run}`, exact: true })
    .first()
    .click();
  await page.getByText('Copies').waitFor();
  expect(await operate.rows(outputs, [run, 'completed'])).toEqual([{ output: { title: 'Green tea', pages: 4 } }]);
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
  const row = (name: string) => page.getByRole('region', { name: 'Differences' }).getByRole('row', { name });
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
