// The facts that the function millrace/connect tells the engine.
import { expect } from 'vitest';
import { findingsTest as test } from '../../support/engine.ts';

test('connecting writes address and secret into Vault, and again when they change', async ({ engine }) => {
  const connect = (url: unknown, secret: unknown) =>
    engine.value('select public.millrace_connect($1, $2)', [url, secret]);
  for (const at of ['one', 'two']) {
    await connect(`http://${at}.test/`, `a secret of ${at}, long enough`);
    expect(
      (
        await engine.rows(`select millrace.setting('project_url') as url, millrace.setting('wake_secret') as secret`)
      )[0],
    ).toEqual({
      url: `http://${at}.test`,
      secret: `a secret of ${at}, long enough`,
    });
  }
  expect(await engine.value(`select count(*)::int from vault.secrets where name ^@ 'millrace_'`)).toBe(2);
  expect(
    await engine.refusal(`select public.millrace_connect('project.test', 'a secret that is long enough')`),
  ).toMatchObject({
    code: 'MR002',
    message: "p_project_url is 'project.test', but must be an address with http:// or https://",
  });
  expect(await engine.refusal(`select public.millrace_connect('http://project.test', 'short')`)).toMatchObject({
    code: 'MR002',
    message: 'p_wake_secret has fewer than 16 characters',
  });
});

test('connecting once leaves an address that is there, and writes one into a branch that has the schema without rows', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only' }]);
  const secret = 'a secret that is long enough';
  const once = (url: string) => engine.value('select public.millrace_connect($1, $2, true)', [url, secret]);
  await engine.configureWakeUps('http://one.test');
  expect(await once('http://two.test')).toBeNull();
  expect(await engine.value(`select millrace.setting('project_url')`)).toBe('http://one.test');

  await engine.sql.query(`
    delete from vault.secrets where name ^@ 'millrace_';
    truncate millrace.pipelines, millrace.settings, millrace.releases cascade;
    select cron.unschedule(jobname) from cron.job`);
  const own = () =>
    engine.rows<{ ok: boolean; detail: string }>(
      `select ok, detail from millrace.doctor() where what in ('the engine has its own rows', 'pg_cron job millrace-sweep')
       order by what desc`,
    );
  const [missing] = await own();
  expect(missing).toEqual({
    ok: false,
    detail: expect.stringMatching(/setting worker_seconds.*, pipeline flow missing: npx millrace connect writes it$/),
  });
  expect(await once('http://two.test')).toEqual({ wake_up: expect.anything() });
  expect(await engine.value(`select millrace.setting('project_url')`)).toBe('http://two.test');
  const found = await own();
  expect(found.map(({ detail }) => detail)).toContain('pipeline flow missing: npx millrace connect writes it');
  expect(found.filter(({ ok }) => !ok)).toHaveLength(1);
});

test('two calls at once take turns, so that neither finds the secrets of the other in its way', async ({ engine }) => {
  const ask = 'select public.millrace_connect($1, $2) is not null as is_done';
  const secret = 'a secret that is long enough';
  await engine.sql.query(`delete from vault.secrets where name ^@ 'millrace_'`);
  const first = await engine.database.connect('service_role');
  await first.query('begin');
  await first.query(ask, ['http://one.test', secret]);
  const second = await engine.database.connect('service_role');
  const answer = second.query(ask, ['http://two.test', secret]);
  await expect
    .poll(() =>
      engine.value(
        `select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      ),
    )
    .toBe(1);
  await first.query('commit');
  expect((await answer).rows).toEqual([{ is_done: true }]);
  expect(await engine.value(`select millrace.setting('project_url')`)).toBe('http://two.test');
});

test('the page’s address is kept: one of one machine gives way to any, and takes the place of no other', async ({
  engine,
}) => {
  const keep = async (url: string | null) =>
    (await engine.value<{ page_url: string }>('select public.millrace_keep_page($1)', [url])).page_url;
  const shown = () =>
    engine.value(`select detail from millrace.doctor() where what = 'messages link to the operator''s page'`);
  expect(await shown()).toContain('npx millrace connect --page=URL');
  expect(await keep('http://127.0.0.1:4000/operate/')).toBe('http://127.0.0.1:4000/operate/');
  expect(await keep('http://localhost:5000/operate/')).toBe('http://localhost:5000/operate/');
  expect(await keep(null)).toBe('http://localhost:5000/operate/');
  expect(await keep('https://ops.test/')).toBe('https://ops.test/');
  expect(await keep('http://127.0.0.1:4000/operate/')).toBe('https://ops.test/');
  expect(await keep('https://localhost.evil.test/'), 'a host that only begins so').toBe('https://localhost.evil.test/');
  expect(await keep(null)).toBe('https://localhost.evil.test/');
  expect(await shown()).toBe('https://localhost.evil.test/');
  const listed = await engine.value<{ settings: { name: string; value: string }[] }>(
    'select public.millrace_settings()',
  );
  expect(listed.settings).toContainEqual(
    expect.objectContaining({ name: 'page_url', value: 'https://localhost.evil.test/' }),
  );
  for (const wrong of ['ops.test', 'javascript:alert(1)', 'https://a b', 'https://x/<y>']) {
    expect(await engine.refusal('select public.millrace_keep_page($1)', [wrong])).toMatchObject({
      code: 'MR002',
      message: expect.stringContaining('must be an address with https:// or http://, or empty'),
    });
  }
});
