import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { LeadsStack } from '../support/stack/stack.ts';

let leads: LeadsStack;
let ids: string[];
beforeAll(async () => {
  leads = await LeadsStack.start({ proxies: true, env: { QUEUE_BATCH_SIZE: '50' } });
  const url = leads.site.add(['Tar, pitch and oakum', 'For hulls of larch and oak.']);
  ids = await leads.queued(...Array.from({ length: 50 }, () => url));
  await leads.finished(ids);
  await leads.expectCompleted(ids);
  // One worker at a time, so that it takes the batch whole.
  await leads.rows('update millrace.stages set max_workers = 1');
});
afterEach(async () => {
  leads.proxies.toModel.decide = () => 'pass';
  await leads.expectSound();
});
afterAll(() => leads.stop());

test('of a batch of 50 with one item that Postgres refuses, 49 are recorded and one fails with the SQL error', async () => {
  const [refused = '', ...others] = ids;
  await leads.rows(
    `alter table public.leads add constraint leads_unfinished check (id <> '${refused}' or messaging_status <> 'completed') not valid`,
  );
  await leads.queue(ids, 'messaging');
  await leads.finished(ids);
  await leads.rows('alter table public.leads drop constraint leads_unfinished');
  await leads.expectCompleted(others);
  expect(await leads.lead(refused)).toMatchObject({
    messaging_status: 'failed',
    messaging_error: expect.stringMatching(/^the database refused to record this \(sql_23514\) \(attempt \d+\)$/),
    messaging_result: null,
  });
  expect(await leads.attempts(refused, 'messaging')).toEqual(['messaging 1 failed sql_23514']);
  expect(await leads.value(`select error_message from millrace.dead_letters where entity_id = '${refused}'`)).toMatch(
    /violates check constraint "leads_unfinished"/,
  );
  const tokens = await leads.value<string>(
    `select count(distinct a.token) from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where s.name = 'messaging' and a.run_id in (select max(r.id) from millrace.runs r group by r.entity_id)`,
  );
  expect(tokens).toBe('1');
});

test('a user who holds the row of a lead in an open transaction holds up that lead alone, and never waits', async () => {
  const [held = '', ...others] = ids.slice(0, 5);
  const user = await leads.session();
  await leads.queue([held, ...others], 'strategy');
  await leads.until('it has begun', async () => (await leads.lead(held)).strategy_status !== 'queued');
  await user.query('begin');
  await user.query(`set local lock_timeout = '5s'`);
  await user.query(`update public.leads set email = 'new@example.com' where id = $1`, [held]);
  await leads.finished(others);
  await leads.expectCompleted(others);
  await user.query(`update public.leads set email = 'newer@example.com' where id = $1`, [held]);
  expect((await leads.run(held)).status).toBe('running');
  await user.query('commit');
  await leads.finished([held]);
  await leads.expectCompleted([held]);
  expect(await leads.lead(held)).toMatchObject({ email: 'newer@example.com', messaging_error: null });
  expect(await leads.attempts(held, 'strategy')).toEqual(
    ['strategy', 'subject', 'messaging'].map((stage) => `${stage} 1 completed`),
  );
});

test('an answer that does not parse is asked for again', async () => {
  const [id = ''] = ids;
  let asked = 0;
  leads.proxies.toModel.decide = () => (++asked === 1 ? answerOf('{"lines": ["Rope"]}') : 'pass');
  await leads.queue([id], 'subject');
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  const first = (await leads.timeline(id)).find(({ stage }) => stage === 'subject');
  expect(first).toMatchObject({
    state: 'failed',
    error_code: 'invalid_output',
    error_message: expect.stringMatching(/output\.lines\[0\]/),
  });
  expect(first?.usage).toMatchObject({ input_tokens: 3, output_tokens: 4 });
  expect((await leads.attempts(id, 'subject')).slice(0, 2)).toEqual([
    'subject 1 failed invalid_output',
    'subject 2 completed',
  ]);
});

test('a stage whose answers never parse fails with the path of the fault, and nothing of them is written', async () => {
  const [id = ''] = ids;
  leads.proxies.toModel.decide = () => answerOf('I would rather not say.');
  await leads.queue([id], 'subject');
  await leads.finished([id]);
  expect(await leads.attempts(id, 'subject')).toEqual(
    [1, 2, 3].map((number) => `subject ${number} failed invalid_output`),
  );
  expect(await leads.lead(id)).toMatchObject({
    subject_status: 'failed',
    subject_result: null,
    subject_error: expect.stringMatching(/output: .*expected object.*\(found: string of 23 characters\)/),
    subject_retry_count: 2,
    messaging_status: 'pending',
  });
});

/** The answer of a model whose text is this. */
function answerOf(text: string) {
  return {
    status: 200,
    json: {
      id: 'resp_1',
      object: 'response',
      created_at: 0,
      model: 'local',
      status: 'completed',
      output: [
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text, annotations: [] }],
        },
      ],
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    },
  };
}
