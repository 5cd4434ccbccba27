import { describe, expect } from 'vitest';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { type Claimed, completed, failed, released, Worker } from '../../support/worker.ts';

const usage = { input_tokens: 100, output_tokens: 20, cost_usd: 0.5 };
const said = (text: string) => ({ output: [{ type: 'message', content: [{ type: 'output_text', text }] }] });
const modelTurn = (seq: number, text = `turn ${seq}`): Row => ({ seq, kind: 'model', content: said(text), usage });
const toolTurn = (seq: number, output = `output ${seq}`): Row => ({
  seq,
  kind: 'tool',
  call_id: `call_${seq}`,
  content: { name: 'look', arguments: '{"page":1}', output, failed: false },
});

type Holder = Pick<Claimed, 'attempt' | 'token'>;

async function checkpoint(worker: Worker, item: Holder, turns: unknown, client = worker.client): Promise<Row> {
  const values = [worker.id, item.attempt, item.token, JSON.stringify(turns)];
  const { rows } = await client.query('select public.millrace_checkpoint($1, $2, $3, $4) as answer', values);
  return rows[0].answer;
}

async function turnsOf(worker: Worker, item: Holder): Promise<Row & { turns: Row[] }> {
  const values = [worker.id, item.attempt, item.token];
  const { rows } = await worker.client.query('select public.millrace_turns($1, $2, $3) as answer', values);
  return rows[0].answer;
}

/** One attempt of an agent stage, claimed. */
async function claimed(engine: Engine, agent: Row | undefined = {}, options: Row = {}) {
  const definition = await engine.pipeline([{ name: 'think', kind: 'agent', agent, ...options }]);
  const [id] = await engine.queued('think');
  const worker = await Worker.of(engine, 'think');
  return { definition, id, worker, item: await worker.takeOne() };
}

const atOnce = { retry: { max_attempts: 3, backoff: { kind: 'list', seconds: [0] } } };
const texts = (turns: Row[]) => turns.map((turn) => JSON.stringify(turn.content).match(/(turn|output) \d+/)?.[0]);
const kept = (engine: Engine) => engine.value<number>('select count(*)::int from millrace.turns');

describe('a checkpoint', () => {
  test('adds turns in order, and they come back with the limits of the stage', async ({ engine }) => {
    const { worker, item } = await claimed(engine, { max_turns: 7, debug: false });
    expect(await checkpoint(worker, item, [modelTurn(1)])).toEqual({ status: 'accepted', next_seq: 2 });
    expect(await checkpoint(worker, item, [toolTurn(2), modelTurn(3)])).toEqual({ status: 'accepted', next_seq: 4 });
    const conversation = await turnsOf(worker, item);
    expect(conversation).toMatchObject({ status: 'current', stage_run: 1, limits: { max_turns: 7, debug: false } });
    expect(conversation.turns).toEqual([
      { ...modelTurn(1), call_id: null, attempt: item.attempt },
      { ...toolTurn(2), usage: null, attempt: item.attempt },
      { ...modelTurn(3), call_id: null, attempt: item.attempt },
    ]);
  });

  test('the limits that come back are those of today', async ({ engine }) => {
    const { definition, worker, item } = await claimed(engine, { max_turns: 7 });
    await engine.define({ ...definition, stages: [{ ...definition.stages[0], agent: { max_turns: 3 } }] });
    expect(await turnsOf(worker, item)).toMatchObject({ limits: { max_turns: 3 } });
  });

  test('a stage without limits has none', async ({ engine }) => {
    const { worker, item } = await claimed(engine, undefined);
    expect(await turnsOf(worker, item)).toMatchObject({ limits: {}, turns: [] });
  });

  test('a number that is taken changes nothing: the first turn stays', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    await checkpoint(worker, item, [modelTurn(1)]);
    expect(await checkpoint(worker, item, [modelTurn(1, 'turn 99')])).toEqual({ status: 'duplicate', next_seq: 2 });
    expect(await checkpoint(worker, item, [modelTurn(1, 'turn 99'), toolTurn(2)])).toMatchObject({
      status: 'accepted',
      next_seq: 3,
    });
    expect(texts((await turnsOf(worker, item)).turns)).toEqual(['turn 1', 'output 2']);
  });

  test('renews heartbeat and leases of its worker', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    await engine.advance('50 seconds');
    await checkpoint(worker, item, [modelTurn(1)]);
    await engine.advance('50 seconds');
    expect(await engine.value('select millrace.sweep()')).toMatchObject({ leases: 0 });
    expect(
      await engine.value('select heartbeat_at = millrace.now() - interval $$50 seconds$$ from millrace.workers'),
    ).toBe(true);
    expect(await worker.report(completed(item))).toEqual(['accepted']);
  });

  test('a turn since the last release makes the count of releases begin anew', async ({ engine }) => {
    const { id, worker, item } = await claimed(engine);
    let held = item;
    for (let seq = 1; seq <= 5; seq++) {
      await checkpoint(worker, held, [modelTurn(seq)]);
      expect(await worker.report(released(held))).toEqual(['accepted']);
      held = await worker.takeOne();
    }
    expect(await engine.attempts(id)).toEqual(['think 1 started']);
    // The last one was a first release: without another turn the third in a row costs an attempt, as for any stage.
    await worker.report(released(held));
    await worker.report(released(await worker.takeOne()));
    expect(await engine.attempts(id)).toEqual(['think 1 failed', 'think 2 queued']);
  });

  test('a duplicate is no progress: it leaves the count of releases', async ({ engine }) => {
    const { id, worker, item } = await claimed(engine);
    await checkpoint(worker, item, [modelTurn(1)]);
    let held = item;
    for (let time = 1; time <= 3; time++) {
      await checkpoint(worker, held, [modelTurn(1)]);
      await worker.report(released(held));
      if (time < 3) held = await worker.takeOne();
    }
    expect(await engine.attempts(id)).toEqual(['think 1 failed', 'think 2 queued']);
  });
});

describe('without the current token', () => {
  test('nothing is recorded or told', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    const forged = { attempt: item.attempt, token: '00000000-0000-4000-8000-000000000000' };
    expect(await checkpoint(worker, forged, [modelTurn(1)])).toEqual({
      status: 'stale',
      reason: 'another worker has the attempt: the token is not the current one',
    });
    expect(await turnsOf(worker, forged)).toMatchObject({ status: 'stale' });
    expect(await turnsOf(worker, item)).toMatchObject({ turns: [] });
  });

  test.for([
    ['cancelled', 'the attempt was cancelled'],
    ['swept', 'the lease had expired and the attempt was given up'],
    ['released', 'the attempt is queued'],
    ['completed', 'the attempt is completed'],
    ['deleted', 'there is no such attempt: its entity or its run was deleted'],
  ] as const)('a worker whose attempt was %s hears why', async ([how, reason], { engine }) => {
    const { id, worker, item } = await claimed(engine);
    if (how === 'cancelled') await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
    if (how === 'swept') {
      await engine.advance('61 seconds');
      await engine.value('select millrace.sweep()');
    }
    if (how === 'released') await worker.report(released(item));
    if (how === 'completed') await worker.report(completed(item));
    if (how === 'deleted') await engine.sql.query('delete from public.items');
    expect(await checkpoint(worker, item, [modelTurn(1)])).toEqual({ status: 'stale', reason });
    expect(await turnsOf(worker, item)).toEqual({ status: 'stale', reason });
    expect(await kept(engine)).toBe(0);
  });

  test('an expired lease that nobody has swept still counts', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    await engine.advance('2 hours');
    expect(await checkpoint(worker, item, [modelTurn(1)])).toMatchObject({ status: 'accepted' });
    expect(await engine.value('select millrace.sweep()')).toMatchObject({ leases: 0 });
  });
});

describe('locks', () => {
  test('a checkpoint does not wait for a user who holds the entity', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    const user = await engine.database.connect();
    await user.query('begin');
    await user.query(`update public.items set label = 'held'`);
    expect(await checkpoint(worker, item, [modelTurn(1)])).toMatchObject({ status: 'accepted' });
    await user.query('rollback');
  });

  test('while somebody is about to end the attempt the answer is busy, and the lease is renewed', async ({
    engine,
  }) => {
    const { worker, item } = await claimed(engine);
    const user = await engine.database.connect();
    await user.query('begin');
    await user.query(`update public.items set think_status = 'queued'`);
    await engine.advance('50 seconds');
    expect(await checkpoint(worker, item, [modelTurn(1)])).toMatchObject({ status: 'busy' });
    await user.query('rollback');
    await engine.advance('50 seconds');
    expect(await engine.value('select millrace.sweep()')).toMatchObject({ leases: 0 });
    expect(await checkpoint(worker, item, [modelTurn(1)])).toMatchObject({ status: 'accepted' });
  });

  test('a call that ends the attempt waits for a checkpoint under way, so that its turn is not lost', async ({
    engine,
  }) => {
    const { worker, item } = await claimed(engine, {}, atOnce);
    const session = await engine.database.connect('service_role');
    await session.query('begin');
    await checkpoint(worker, item, [modelTurn(1)], session);
    const superseding = engine.sql.query(`update public.items set think_status = 'queued'`);
    const waiting = await engine.database.connect();
    await expect
      .poll(async () => {
        const { rows } = await waiting.query(
          `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows[0].n;
      })
      .toBe(1);
    await session.query('commit');
    await superseding;
    expect(await kept(engine)).toBe(1);
  });
});

describe('an execution', () => {
  test('is one conversation over automatic retries, also after a lost lease', async ({ engine }) => {
    const { worker, item } = await claimed(engine, {}, atOnce);
    await checkpoint(worker, item, [modelTurn(1), toolTurn(2)]);
    await worker.report(failed(item));
    const second = await worker.takeOne();
    expect(await turnsOf(worker, second)).toMatchObject({ stage_run: 1 });
    expect(await checkpoint(worker, second, [modelTurn(3)])).toEqual({ status: 'accepted', next_seq: 4 });
    await engine.advance('61 seconds');
    await engine.value('select millrace.sweep()');
    await engine.advance('1 hour');
    const third = await (await Worker.of(engine, 'think')).takeOne();
    const { turns } = await turnsOf(worker, third);
    expect(texts(turns)).toEqual(['turn 1', 'output 2', 'turn 3']);
    expect(turns.map((turn) => turn.attempt)).toEqual([item.attempt, item.attempt, second.attempt]);
  });

  test('begins anew when the stage is started over', async ({ engine }) => {
    const { id, worker, item } = await claimed(engine);
    await checkpoint(worker, item, [modelTurn(1)]);
    await engine.queue('think', [id as string]);
    const again = await worker.takeOne();
    expect(await turnsOf(worker, again)).toMatchObject({ stage_run: 2, turns: [] });
    expect(await checkpoint(worker, again, [modelTurn(1, 'turn 50')])).toMatchObject({ status: 'accepted' });
    expect(await engine.rows('select stage_run, seq from millrace.turns order by 1')).toEqual([
      { stage_run: 1, seq: 1 },
      { stage_run: 2, seq: 1 },
    ]);
  });

  test('begins anew when a person retries it', async ({ engine }) => {
    const { id, worker, item } = await claimed(engine);
    await checkpoint(worker, item, [modelTurn(1)]);
    await worker.report(failed(item, { permanent: true }));
    await engine.sql.query('select millrace.retry($1)', [(await engine.run(id)).id]);
    expect(await turnsOf(worker, await worker.takeOne())).toMatchObject({ stage_run: 2, turns: [] });
  });

  test('counts its time from its first start, also over retries and releases', async ({ engine }) => {
    const { worker, item } = await claimed(engine, {}, atOnce);
    await engine.advance('10 seconds');
    expect(await turnsOf(worker, item)).toMatchObject({ elapsed_ms: 10_000 });
    await worker.report(failed(item));
    await engine.advance('10 seconds');
    const second = await worker.takeOne();
    expect(await turnsOf(worker, second)).toMatchObject({ elapsed_ms: 20_000 });
  });

  test('that was released counts its time from its first turn', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    await engine.advance('10 seconds');
    await checkpoint(worker, item, [modelTurn(1)]);
    await worker.report(released(item));
    await engine.advance('5 seconds');
    expect(await turnsOf(worker, await worker.takeOne())).toMatchObject({ elapsed_ms: 5_000 });
  });
});

describe('the conversation', () => {
  test('goes with the completion of its stage', async ({ engine }) => {
    const { worker, item } = await claimed(engine, {}, atOnce);
    await checkpoint(worker, item, [modelTurn(1)]);
    await worker.report(failed(item));
    const second = await worker.takeOne();
    await checkpoint(worker, second, [modelTurn(2)]);
    expect(await worker.report(completed(second))).toEqual(['accepted']);
    expect(await kept(engine)).toBe(0);
  });

  test('of others in the same batch stays', async ({ engine }) => {
    await engine.pipeline([{ name: 'think', kind: 'agent' }]);
    await engine.queued('think', 2);
    const worker = await Worker.of(engine, 'think');
    const [first, second] = await worker.take();
    if (!first || !second) throw new Error('two items were queued');
    await checkpoint(worker, first, [modelTurn(1)]);
    await checkpoint(worker, second, [modelTurn(1)]);
    await worker.report(completed(first), released(second));
    expect(await engine.rows('select attempt_id::int as attempt from millrace.turns')).toEqual([
      { attempt: second.attempt },
    ]);
  });

  test('stays with debug, until its run is pruned', async ({ engine }) => {
    const { worker, item } = await claimed(engine, { debug: true });
    await checkpoint(worker, item, [modelTurn(1)]);
    await worker.report(completed(item));
    await engine.advance('89 days');
    await engine.value('select millrace.prune()');
    expect(await kept(engine)).toBe(1);
    await engine.advance('2 days');
    await engine.value('select millrace.prune()');
    expect(await kept(engine)).toBe(0);
  });

  test('stays when the stage fails', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    await checkpoint(worker, item, [modelTurn(1)]);
    await worker.report(failed(item, { permanent: true }));
    expect(await kept(engine)).toBe(1);
  });

  test('goes with its entity', async ({ engine }) => {
    const { worker, item } = await claimed(engine);
    await checkpoint(worker, item, [modelTurn(1)]);
    await engine.sql.query('delete from public.items');
    expect(await kept(engine)).toBe(0);
  });

  test('can be read by SQL, with what it has used up', async ({ engine }) => {
    const { id, worker, item } = await claimed(engine, { debug: true });
    const call = { type: 'function_call', name: 'look', arguments: '{"page":1}', call_id: 'call_2' };
    const first = { seq: 1, kind: 'model', content: { asked: 'Find it.', output: [call] }, usage };
    const failure = { ...toolTurn(4, 'no such page'), content: { name: 'look', output: 'no such page', failed: true } };
    await checkpoint(worker, item, [first, toolTurn(2), modelTurn(3, 'Here it is.'), failure]);
    const log = await engine.rows(
      'select pipeline, stage, entity_id, stage_run, seq, kind, what, tool, arguments, output, tokens::int, cost_usd::float8, asked, at from millrace.agent_log',
    );
    const common = { pipeline: 'flow', stage: 'think', entity_id: id, stage_run: 1, at: await engine.now() };
    const model = { ...common, kind: 'model', tokens: 120, cost_usd: 0.5 };
    const tool = { ...common, kind: 'tool', tool: 'look', tokens: null, cost_usd: null, asked: null };
    expect(log).toEqual([
      { ...model, seq: 1, what: 'calls look', tool: 'look', arguments: '{"page":1}', output: null, asked: 'Find it.' },
      { ...tool, seq: 2, what: 'answers', arguments: '{"page":1}', output: 'output 2' },
      { ...model, seq: 3, what: 'answers', tool: null, arguments: null, output: 'Here it is.', asked: null },
      { ...tool, seq: 4, what: 'fails', arguments: null, output: 'no such page' },
    ]);
  });
});

describe('what is malformed is refused by name', () => {
  test.for([
    ['no list', null, /^p_turns is missing, but must be given$/],
    ['an object', {}, /^p_turns is \{\}, but must be of type array$/],
    ['an empty list', [], /^p_turns has 0 items, but must have at least 1$/],
    ['101 turns', Array.from({ length: 101 }, (_, n) => modelTurn(n + 1)), /has 101 items/],
    ['a number for a turn', [7], /^p_turns\[0\] is 7, but must be of type object$/],
    [
      'a number of 0',
      [{ ...modelTurn(1), seq: 0 }],
      /^p_turns\[0\]\.seq is 0, but must be a whole number from 1 to 999999999$/,
    ],
    ['a text for a number', [{ ...modelTurn(1), seq: 'x' }, modelTurn(2)], /^p_turns\[0\]\.seq is "x"/],
    ['half a number', [modelTurn(1), { ...modelTurn(2), seq: 1.5 }], /^p_turns\[1\]\.seq is 1\.5/],
    ['a gap', [modelTurn(1), modelTurn(3)], /^p_turns\[1\]\.seq is 3, which does not follow/],
    [
      'a first turn of number 2',
      [modelTurn(2)],
      /^p_turns\[0\]\.seq is 2, but the next turn of this conversation is 1$/,
    ],
    [
      'a turn of a user',
      [{ ...modelTurn(1), kind: 'user' }],
      /^p_turns\[0\]\.kind is "user", but must be one of "model", "tool"$/,
    ],
    [
      'a tool without call_id',
      [{ ...toolTurn(1), call_id: null }],
      /^p_turns\[0\]\.call_id is null, but must be given for a tool alone$/,
    ],
    ['a model with call_id', [{ ...modelTurn(1), call_id: 'c' }], /^p_turns\[0\]\.call_id is c/],
    [
      'a text for content',
      [{ ...modelTurn(1), content: 'text' }],
      /^p_turns\[0\]\.content is "text", but must be of type object$/,
    ],
    [
      'a list for usage',
      [{ ...modelTurn(1), usage: [] }],
      /^p_turns\[0\]\.usage has 0 items|^p_turns\[0\]\.usage is \[\], but must be of type object or null$/,
    ],
    [
      'a turn of a megabyte',
      [toolTurn(1, 'x'.repeat(1_048_576))],
      /^p_turns\[0\] has \d+ bytes, but a turn may have 1048576$/,
    ],
  ] as const)('%s', async ([, turns, message], { engine }) => {
    const { worker, item } = await claimed(engine);
    const values = [worker.id, item.attempt, item.token, turns === null ? null : JSON.stringify(turns)];
    const statement = 'select public.millrace_checkpoint($1, $2, $3, $4)';
    expect(await engine.refusal(statement, values, worker.client)).toMatchObject({
      code: 'MR002',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/\.$/),
    });
    expect(await kept(engine)).toBe(0);
  });
});
