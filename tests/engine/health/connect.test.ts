// What the function millrace/connect tells the engine.
import { expect } from 'vitest';
import { test } from '../../support/engine.ts';

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
