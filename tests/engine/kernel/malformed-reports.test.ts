import { expect } from 'vitest';
import { chain, type Row, test } from '../../support/engine.ts';
import { completed, failed, resume, Worker, waiting } from '../../support/worker.ts';

const external = { kind: 'external', completion: { callback: true } };
const uuid = '3f0e4c1c-7f0b-4d52-9c62-2c3f8f9a1f11';
const sound = { attempt: 1, token: uuid, outcome: 'completed', result: {} };

// The fault, the item, and what the reason must name.
const malformed: [string, unknown, RegExp][] = [
  ['a number', 7, /must be an object.*number/],
  ['null', null, /must be an object.*null/],
  ['a list', [1], /must be an object.*array/],
  ['a string', 'result', /must be an object.*string/],
  ['an empty object', {}, /attempt must be the number of an attempt.*null/],
  ['an attempt in words', { ...sound, attempt: 'first' }, /attempt must be.*first/],
  ['a negative attempt', { ...sound, attempt: -1 }, /attempt must be.*-1/],
  ['half an attempt', { ...sound, attempt: 1.5 }, /attempt must be.*1\.5/],
  ['an attempt beyond all numbers', { ...sound, attempt: 1e30 }, /attempt must be/],
  ['no token', { ...sound, token: undefined }, /token must be/],
  ['no outcome', { ...sound, outcome: undefined }, /outcome must be completed.*null/],
  ['an outcome nobody knows', { ...sound, outcome: 'skipped' }, /outcome must be.*skipped/],
  ['no result', { ...sound, result: undefined }, /completed item must have a result/],
  ['waiting for nobody', { ...sound, outcome: 'waiting', job_id: 'j' }, /service and job_id/],
  ['waiting for nothing', { ...sound, outcome: 'waiting', service: 's' }, /service and job_id/],
  ['a pause in words', { ...sound, outcome: 'failed', error: { retry_after_ms: 'soon' } }, /error\.retry_after_ms/],
  ['a code as long as a message', { ...sound, outcome: 'failed', error: { code: 'x'.repeat(201) } }, /error\.code/],
  ['perhaps permanent', { ...sound, outcome: 'failed', error: { permanent: 'yes' } }, /error\.permanent/],
];

test('a malformed item is rejected with the field and the value found, beside a sound one that is accepted', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  const { items } = await worker.complete([...malformed.map(([, item]) => item), completed(held)]);
  expect(items.at(-1)).toMatchObject({ verdict: 'accepted' });
  for (const [place, [what, , reason]] of malformed.entries()) {
    expect({ what, ...items[place] }).toMatchObject({
      what,
      verdict: 'rejected',
      reason: expect.stringMatching(reason),
    });
  }
});

test('a list within the list is rejected as any other item', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  for (const list of [[], [completed(held)]]) {
    const { items } = await worker.complete([list]);
    expect(items).toMatchObject([{ verdict: 'rejected', reason: 'an item must be an object, this is array' }]);
  }
  expect(await worker.report(completed(held))).toEqual(['accepted']);
});

test('keys that nobody asked for change nothing about a report, whatever its outcome', async ({ engine }) => {
  await engine.pipeline(chain(['one'], external));
  await engine.queued('one', 6);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  const reports = batch.map((item, place) => ({
    ...([completed(item), failed(item), waiting(item, `${place}`)][place % 3] as Row),
    malformed: place < 3 ? 'string' : null,
  }));
  expect(await worker.report(...reports)).toEqual(Array(6).fill('accepted'));
});

test('a call that is no list, or a list too long, is refused as a whole and records nothing', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  for (const [items, message] of [
    [null, /p_items is null, but must be a list/],
    [{}, /p_items is object, but must be a list/],
    [7, /p_items is number, but must be a list/],
    [[completed(held), ...Array(9_999).fill(sound)], /p_items has 10000 items, but one call takes at most 1000/],
  ] as const) {
    await expect(worker.complete(items, 0, 2)).rejects.toMatchObject({
      code: 'MR002',
      message: expect.stringMatching(message),
    });
  }
  expect(await engine.attempts(id)).toEqual(['one 1 started']);
  worker.seq = 1;
  expect(await worker.report(completed(held))).toEqual(['accepted']);
});

test('a thousand items are taken in one call', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { batch_size: 500 }));
  await engine.queued('one', 1000);
  const worker = await Worker.of(engine, 'one');
  const items = [...(await worker.take(500)), ...(await worker.take(500))];
  const verdicts = await worker.report(...items.map((item) => completed(item)));
  expect(verdicts.filter((verdict) => verdict === 'accepted')).toHaveLength(1000);
});

const unstorable: [string, string][] = [
  ['a null character', '{"text":"a\\u0000b"}'],
  ['half a surrogate pair', '{"text":"\\ud800"}'],
  ['a number beyond all numbers', '{"n":1e999999}'],
];

test.for(unstorable)(
  'a result with %s fails its own attempt for good, and none of the 49 beside it',
  async ([, result], { engine }) => {
    await engine.pipeline(chain(['one']));
    await engine.queued('one', 50);
    const worker = await Worker.of(engine, 'one');
    const batch = await worker.take(50);
    const items = batch.map((item, place) =>
      JSON.stringify(completed(item, '?')).replace('"?"', place === 20 ? result : '{"ok":true}'),
    );
    const answer = await worker.complete(`[${items.join(',')}]`);
    expect(answer.items.filter((item) => item.verdict === 'accepted')).toHaveLength(49);
    expect(answer.items[20]).toMatchObject({
      attempt: batch[20]?.attempt,
      verdict: 'rejected',
      reason: expect.stringMatching(/\w/),
    });
    expect(await engine.rows('select entity_id, error_code, error_message from millrace.dead_letters')).toEqual([
      { entity_id: '21', error_code: 'unstorable_result', error_message: expect.stringMatching(/cannot store/) },
    ]);
  },
);

test('an item whose own fields hold what Postgres cannot store is rejected alone', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  const broken = [
    '"\\u0000"',
    '["\\u0000"]',
    '{"attempt":"\\u0000"}',
    '{"attempt":"first","result":"\\u0000"}',
    `{"attempt":991,"token":"\\u0000","outcome":"completed","result":1}`,
    `{"attempt":992,"token":"${uuid}","outcome":"\\u0000","result":1}`,
  ];
  const answer = await worker.complete(`[${[...broken, JSON.stringify(completed(held))].join(',')}]`);
  expect(answer.items.map((item) => item.verdict)).toEqual([
    'rejected',
    'rejected',
    'rejected',
    'rejected',
    'stale',
    'rejected',
    'accepted',
  ]);
});

test('an error message that Postgres cannot store still fails its attempt', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { retry: { max_attempts: 1 } }));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(failed(await worker.takeOne(), { message: 'bad \u0000 byte' }));
  expect(await engine.attempts(id)).toEqual(['one 1 failed']);
  expect((await engine.item(id)).one_error).toMatch(/bad.*byte/);
});

test('a result above the size limit fails for good and says where to put it', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { result_limit_bytes: 2000 }));
  const ids = await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const [small, large] = await worker.take();
  if (!small || !large) throw new Error('nothing claimed');
  const { items } = await worker.complete([completed(small, 'x'.repeat(1900)), completed(large, 'x'.repeat(2100))]);
  expect(items).toMatchObject([
    { verdict: 'accepted' },
    {
      verdict: 'rejected',
      reason: expect.stringMatching(/bytes, but the limit of stage one is 2000; put it into Storage/),
    },
  ]);
  expect(await engine.item(ids[1])).toMatchObject({
    one_status: 'failed',
    one_error: expect.stringMatching(/Storage/),
  });
  expect(await engine.rows('select error_code from millrace.dead_letters')).toEqual([
    { error_code: 'result_too_large' },
  ]);
});

test('the size of a result is that of its text, however small the numbers in it are kept', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { result_limit_bytes: 20_000 }));
  await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  for (const number of [1e308, 1e255, Number.MIN_VALUE]) {
    expect(await worker.report(completed(await worker.takeOne(), Array(90).fill(number)))).toEqual(['rejected']);
  }
});

test('the limit is one megabyte unless the stage says otherwise, also for external jobs', async ({ engine }) => {
  await engine.pipeline(chain(['one'], external));
  await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const [small, large] = await worker.take();
  if (!small || !large) throw new Error('nothing claimed');
  await worker.report(waiting(small, 'a'), waiting(large, 'b'));
  const end = (item: { submission: number }, job_id: string, size: number): Row => {
    return { submission: item.submission, service: 'scraper', job_id, outcome: 'completed', result: 'x'.repeat(size) };
  };
  const { items } = await resume(engine, [end(small, 'a', 1_000_000), end(large, 'b', 1_100_000)]);
  expect(items.map((item) => item.verdict)).toEqual(['accepted', 'rejected']);
});

test('an error given in any shape becomes an error with a code and a message', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { retry: { max_attempts: 1 } }));
  const ids = await engine.queued('one', 5);
  const worker = await Worker.of(engine, 'one');
  const errors = [undefined, null, 'gone', {}, { code: 418, message: { deep: true } }];
  const batch = await worker.take();
  await worker.complete(batch.map((item, place) => ({ ...failed(item), error: errors[place] })));
  for (const id of ids) {
    const { one_status, one_error } = await engine.item(id);
    expect({ one_status, one_error }).toEqual({ one_status: 'failed', one_error: expect.stringMatching(/\w/) });
  }
});
