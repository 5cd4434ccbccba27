// The page's examples are run as they are written, in a folder of their own.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test as plain } from 'vitest';
import type * as Code from '../../packages/test/index.ts';
import type * as Declared from '../../packages/test/test.d.ts';
import type { Outcome } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { Failure } from '../../supabase/functions/_millrace/errors.ts';
import { projectFolder, runNode } from '../cli/run-command.ts';
import { test } from '../support/engine.ts';
import { docsFolder } from './page.ts';

const text = await readFile(path.join(docsFolder, 'testing.md'), 'utf8');
const examples = [...text.matchAll(/^```ts\n\/\/ tests\/(\S+)\n(.*?)^```/gms)].map(([, name = '', code = '']) => ({
  name,
  code,
}));

type Same<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;
type Parts = [
  Same<keyof typeof Code, keyof typeof Declared>,
  Same<Required<Failure>, Required<Declared.Failure>>,
  Same<Outcome['outcome'], Declared.Called['outcome']>,
  typeof Code extends typeof Declared ? true : false,
];

// The compiler refuses this where the package's code and its test.d.ts part.
[true, true, true, true] satisfies Parts;

plain('its tests pass as they are written', async () => {
  await mkdir(path.join(projectFolder, '.cache'), { recursive: true });
  const folder = await mkdtemp(path.join(projectFolder, '.cache', 'page-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const { name, code } of examples) {
    const placed = code
      .replaceAll("'../supabase/", "'../../supabase/")
      .replace("'@millrace/test'", "'../../packages/test/index.ts'");
    await writeFile(path.join(folder, name), placed);
  }
  await writeFile(
    path.join(folder, 'vitest.config.ts'),
    `export default { test: { include: ['*.test.ts'], testTimeout: 120_000 } };`,
  );
  const config = path.join(folder, 'vitest.config.ts');
  const { code, stdout, stderr } = await runNode(
    ['node_modules/vitest/vitest.mjs', 'run', '--config', config, '--root', folder],
    { cwd: projectFolder },
  );
  expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining('4 passed') });
});

test('the clock of a test stands still until the test sets it', async ({ engine }) => {
  const [, sql = ''] = /^```sql\n(.*?)^```/ms.exec(text) ?? [];
  await engine.sql.query('drop table public.test_clock');
  await engine.sql.query(sql);
  expect(await engine.value('select millrace.now() = c.at from public.test_clock c')).toBe(true);
  expect(await engine.value(`select millrace.now() > now() + interval '59 minutes'`)).toBe(true);
});
