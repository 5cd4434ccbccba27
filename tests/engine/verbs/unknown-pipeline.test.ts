import { expect } from 'vitest';
import { projectTest as test } from '../../support/engine.ts';

const calls = [
  `millrace.start('orders', '1')`,
  `millrace.start('orders', array['1'])`,
  `millrace.attach('orders')`,
  `millrace.pause('orders')`,
  `millrace.figures('orders')`,
  `public.millrace_search('{"text": "text", "pipeline": "orders"}')`,
];

test('an error about an unknown pipeline lists those that there are', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  for (const call of calls) {
    expect(await engine.refusal(`select ${call}`), call).toMatchObject({
      code: 'MR003',
      message: expect.stringMatching(/^there is no pipeline '?orders'?$/),
      hint: expect.stringMatching(/^Those there are: (\w+, )*flow, .*\. A new one comes by npx millrace sync/),
    });
  }
});
