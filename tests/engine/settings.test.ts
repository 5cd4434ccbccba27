import { expect } from 'vitest';
import { test } from '../support/engine.ts';

test.for([
  ['worker_seconds', '-1', 'a whole number from 1 to 9999'],
  ['worker_seconds', '1.5', 'a whole number from 1 to 9999'],
  ['retention_days', 'abc', 'a whole number from 1 to 9999'],
  ['retention_days', '100000', 'a whole number from 1 to 9999'],
  ['batch_bytes', '9999', 'a whole number from 10000 to 99999999'],
  ['batch_bytes', '8 MB', 'a whole number from 10000 to 99999999'],
])('setting %s is refused as %s: it must be %s', async ([name, value, wanted], { engine }) => {
  const before = await engine.rows('select * from millrace.settings order by name');
  expect(await engine.refusal('update millrace.settings set value = $2 where name = $1', [name, value])).toMatchObject({
    code: 'MR002',
    message: `setting ${name} is '${value}', but must be ${wanted}`,
  });
  expect(await engine.rows('select * from millrace.settings order by name')).toEqual(before);
});
