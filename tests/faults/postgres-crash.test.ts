import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { gate } from '../support/faults/fault-proxy.ts';
import { LeadsStack } from '../support/stack/stack.ts';

let leads: LeadsStack;
beforeAll(async () => {
  leads = await LeadsStack.start({ proxies: true });
});
afterEach(() => leads.expectSound());
afterAll(() => leads.stop());

test('when Postgres is killed with -9 in the middle of a run and started again, every lead is finished all the same', async () => {
  const { passed, open } = gate();
  let asked = 0;
  // The first answers come, the others stay away until Postgres is gone.
  leads.proxies.toModel.decide = () => (++asked <= 5 ? 'pass' : passed.then(() => 'pass'));
  const urls = Array.from({ length: 12 }, (_, n) => leads.site.add([`Pilots for harbour ${n}`]));
  const ids = await leads.queued(...urls);
  await leads.until('some are further than others', async () => (await leads.count('intel', 'completed')) >= 3);
  const before = await leads.rows<{ id: string; intel_result: unknown }>(
    `select id, intel_result from public.leads where intel_status = 'completed' order by id`,
  );
  await leads.stack.postgres.kill9();
  open();
  await leads.stack.postgres.start();
  expect(
    await leads.rows(`select id, intel_result from public.leads where id = any ($1) order by id`, [
      before.map(({ id }) => id),
    ]),
  ).toEqual(before);
  await leads.finished(ids);
  await leads.expectCompleted(ids);
});
