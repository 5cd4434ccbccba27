// The changes that a user makes to a lead while a function works on it.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { StageName } from '../support/examples/leads-report.ts';
import { type Fate, gate } from '../support/faults/fault-proxy.ts';
import { LeadsStack } from '../support/stack/stack.ts';

let leads: LeadsStack;
beforeAll(async () => {
  leads = await LeadsStack.start({ proxies: true });
});
afterEach(async () => {
  leads.proxies.toModel.decide = () => 'pass';
  await leads.expectSound();
});
afterAll(() => leads.stop());

/** Two leads for which the model is being asked at a stage; `answer` lets the model answer. */
async function underWork(stage: StageName): Promise<{ ids: [string, string]; answer: () => void }> {
  const { passed, open } = gate();
  const held: string[] = [];
  leads.proxies.toModel.decide = async ({ body }): Promise<Fate> => {
    if (JSON.parse(body).metadata.stage === stage && held.length < 2) {
      held.push(body);
      await passed;
    }
    return 'pass';
  };
  const ids = await leads.queued(leads.site.add(['Candles of wax']), leads.site.add(['Wicks of cotton']));
  await leads.until('the model is asked for both', async () => held.length === 2);
  return { ids: ids as [string, string], answer: open };
}

/** Waits for the word of a function about an outcome that counts for nothing any more. */
async function untilToldOff(stage: StageName, reason: RegExp): Promise<void> {
  const logs = () => leads.stack.functions.logs(`leads-${stage}`);
  await leads.until('the function has learned it', async () =>
    logs().some((line) => /an outcome was not taken/.test(line) && reason.test(line)),
  );
}

test('a lead deleted while its stage runs leaves nothing behind, and the lead beside it goes on', async () => {
  const { ids, answer } = await underWork('intel');
  const [deleted, other] = ids;
  await leads.rows('delete from public.leads where id = $1', [deleted]);
  answer();
  await leads.finished([other]);
  await leads.expectCompleted([other]);
  expect(await leads.rows('select from millrace.runs where entity_id = $1', [deleted])).toEqual([]);
  await untilToldOff('intel', /deleted/);
});

test('a run cancelled while its stage runs stays cancelled, and the lead beside it goes on', async () => {
  const { ids, answer } = await underWork('strategy');
  const [cancelled, other] = ids;
  await leads.rows('select millrace.cancel($1)', [(await leads.run(cancelled)).id]);
  answer();
  await leads.finished([other]);
  await leads.expectCompleted([other]);
  await untilToldOff('strategy', /cancelled/);
  expect(await leads.lead(cancelled)).toMatchObject({
    strategy_status: 'failed',
    strategy_error: 'cancelled',
    strategy_result: null,
    subject_status: 'pending',
  });
});

test('a stage queued again while it runs starts over: the old answer counts for nothing, the new one is recorded', async () => {
  const { ids, answer } = await underWork('subject');
  const [again, other] = ids;
  await leads.queue([again], 'subject');
  answer();
  await leads.finished(ids);
  await leads.expectCompleted(ids);
  expect(await leads.attempts(again, 'subject')).toEqual([
    'subject 1 cancelled cancelled',
    'subject 2 completed',
    'messaging 1 completed',
  ]);
  expect(await leads.attempts(other, 'subject')).toEqual(['subject 1 completed', 'messaging 1 completed']);
});

test('an earlier stage queued again while a later one runs takes the lead back there', async () => {
  const { ids, answer } = await underWork('messaging');
  const [again, other] = ids;
  await leads.queue([again], 'intel');
  answer();
  await leads.finished([again, other]);
  await leads.expectCompleted([again, other]);
  expect(await leads.attempts(again, 'intel')).toEqual([
    'intel 1 completed',
    'strategy 1 completed',
    'subject 1 completed',
    'messaging 1 cancelled cancelled',
    'intel 2 completed',
    'strategy 2 completed',
    'subject 2 completed',
    'messaging 2 completed',
  ]);
});
