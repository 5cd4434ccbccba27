// Agents between their turns, child runs, and children that wait for an external job, when something dies or is reset.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Call, send } from '../support/faults/fault-proxy.ts';
import { type EngineCall, outcomesOf, PatternsStack } from '../support/stack/patterns-stack.ts';

let stack: PatternsStack;
beforeAll(async () => {
  stack = await PatternsStack.start();
});
afterEach(async () => {
  stack.leads.proxies.toModel.decide = () => 'pass';
  stack.leads.proxies.callbacks.decide = () => 'pass';
  await stack.expectSound();
});
afterAll(() => stack.stop());

/** Makes the model call the tool for the left side, then for the right side, then answer; resolves to the keys it is asked under. */
function scriptModel(): string[] {
  const keys: string[] = [];
  stack.leads.proxies.toModel.decide = ({ body, headers }) => {
    keys.push(String(headers['idempotency-key']));
    const outputs = (JSON.parse(body).input as { type: string }[]).filter(
      ({ type }) => type === 'function_call_output',
    );
    const side = ['left', 'right'][outputs.length];
    return { status: 200, json: side ? said(weighing(side)) : said(answering({ total: 10 })) };
  };
  return keys;
}

const isTurn = (seq: number) => (call: EngineCall) =>
  call.name === 'millrace_checkpoint' && (call.args.p_turns as { seq: number }[])[0]?.seq === seq;
const isEnd = (call: EngineCall) => call.name === 'millrace_complete' && outcomesOf(call).includes('completed');

test.each([
  { moment: 'between two turns', when: 'after', at: isTurn(1), tools: ['left', 'right'], asked: 3 },
  // Its output was not recorded: the tool runs again, under the same key.
  {
    moment: 'after a tool ran and before that was recorded',
    when: 'before',
    at: isTurn(2),
    tools: ['left', 'left', 'right'],
    asked: 3,
  },
  { moment: 'after a tool ran and was recorded', when: 'after', at: isTurn(2), tools: ['left', 'right'], asked: 3 },
  {
    moment: 'after its answer was recorded and before it is complete',
    when: 'before',
    at: isEnd,
    tools: ['left', 'right'],
    asked: 3,
  },
] as const)(
  'an agent that is killed $moment goes on from its last recorded turn',
  async ({ when, at, tools, asked }) => {
    const modelKeys = scriptModel();
    const run = await stack.kill('review-weigh', when, at, () => stack.begin('review'));
    await stack.recover();
    expect(await stack.attempts(run)).toEqual(['weigh 1 failed lost_lease', 'weigh 2 completed']);
    expect(await stack.result(run, 'weigh')).toEqual({ total: 10 });
    expect(stack.told.map(({ what }) => what)).toEqual(tools.map((side) => `weigh/${side}`));
    // A key for each side, however often it was weighed.
    expect(new Set(stack.told.map(({ what, key }) => `${what} ${key}`)).size).toBe(2);
    expect(new Set(stack.told.map(({ key }) => key)).size).toBe(2);
    expect(modelKeys).toHaveLength(asked);
    expect(await stack.leads.value('select count(*)::int from millrace.turns')).toBe(0);
  },
);

test('a child run whose function is killed at work is tried again, while its parent goes on waiting', async () => {
  const run = await stack.kill('mastering-mix', 'before', isEnd, () => stack.begin('release'));
  await stack.recover();
  await expectReleased(run, ['mix 1 failed lost_lease', 'mix 2 completed']);
});

test('a child run whose function is killed after its commit and before it collects is joined by the sweep', async () => {
  const isCollect = ({ name }: EngineCall) => name === 'millrace_collect_children';
  const run = await stack.kill('mastering-mix', 'before', isCollect, () => stack.begin('release'));
  expect(await stack.attempts(run)).toEqual(['master 1 waiting']);
  await stack.recover();
  await expectReleased(run, ['mix 1 completed']);
});

async function expectReleased(run: string, childAttempts: string[]): Promise<void> {
  expect(await stack.attempts(run)).toEqual(['master 1 completed', 'announce 1 completed']);
  const children = await stack.leads.rows<{ id: string; status: string; done: number; same_trace: boolean }>(
    `select c.id, c.status, c.entity_id::int as done, c.trace_id = p.trace_id as same_trace
     from millrace.runs p join millrace.fan_outs f on f.run_id = p.id join millrace.runs c on c.fan_out_id = f.id where p.id = $1`,
    [run],
  );
  expect(children).toMatchObject([{ status: 'completed', same_trace: true }]);
  const [child] = children;
  expect(await stack.attempts(child?.id ?? '')).toEqual(childAttempts);
  expect(await stack.result(run, 'master')).toEqual({ mix: { done: child?.done } });
}

test('callbacks of children’s jobs while their parent is reset, and after, change nothing in the children that follow', async () => {
  const { leads } = stack;
  const kept: Call[] = [];
  leads.proxies.callbacks.decide = (call) => {
    kept.push(call);
    return { status: 503, json: {} };
  };
  const ids = await leads.insert([leads.site.add(['Bells for buoys']), leads.site.add(['Lenses for beacons'])]);
  const run = await stack.begin('campaign', { leads: ids });
  await stack.until('both jobs are over', async () => kept.length === 2);
  await stack.until('both children wait for their jobs', async () => (await leads.count('scrape', 'waiting')) === 2);
  await stack.until('the parent waits', async () => (await stack.attempts(run))[0] === 'send 1 waiting');
  const [first, second] = kept as [Call, Call];
  leads.proxies.callbacks.decide = () => 'pass';
  const [, meanwhile] = await Promise.all([leads.rows('select millrace.reset($1)', [run]), deliver(first)]);
  expect(['accepted', 'stale', 'busy']).toContain(meanwhile);
  await stack.settled(() => leads.sweep());
  expect(await deliver(second)).toBe('stale');
  expect(await deliver(first)).toBe(meanwhile === 'accepted' ? 'duplicate' : 'stale');
  await leads.expectCompleted(ids);
  expect(await stack.attempts(run)).toEqual(['send 1 cancelled cancelled', 'send 2 completed']);
  expect(await stack.result(run, 'send')).toEqual({ total: 2, completed: 2, failed: 0, cancelled: 0 });
  expect(
    await leads.rows(
      `select r.entity_id, array_agg(r.status::text order by r.id) as statuses from millrace.runs r
       where r.entity_id = any ($1) group by 1 order by 1`,
      [ids],
    ),
  ).toEqual([...ids].sort().map((entity_id) => ({ entity_id, statuses: ['cancelled', 'completed'] })));
});

/** Sends a callback to the project; resolves to the verdict, or to the error's code. */
async function deliver(callback: Call): Promise<string> {
  const answer = JSON.parse((await send(stack.leads.stack.apiUrl, callback)).body.toString());
  return answer.verdict ?? answer.error.code;
}

function said(output: object) {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 0,
    model: 'local',
    status: 'completed',
    output: [output],
    usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
  };
}

function weighing(side: string) {
  return {
    type: 'function_call',
    id: 'fc_1',
    call_id: `call_${side}`,
    name: 'weigh',
    arguments: JSON.stringify({ side }),
    status: 'completed',
  };
}

function answering(value: unknown) {
  const text = JSON.stringify(value);
  return {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  };
}
