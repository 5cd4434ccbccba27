import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { keepChildren } from '../../packages/test/kept-children.ts';
import { definePipeline } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { createEngine, type RpcAnswer } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import type { ChildItem } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { classify, LeaseLost } from '../../supabase/functions/_millrace/errors.ts';
import { defineMap } from '../../supabase/functions/_millrace/stage/map-stage.ts';
import { createChildren } from '../../supabase/functions/_millrace/stage/spawn-children.ts';
import type { HandlerContext } from '../../supabase/functions/_millrace/stage/stage.ts';
import { makeContext } from '../support/context.ts';
import { failedAnswer, makeItem } from '../support/runtime/fake-engine.ts';
import { keepLog } from '../support/runtime/make-drain.ts';

const worked = {
  batchSize: 1,
  maxWorkers: 1,
  leaseSeconds: 60,
  timeoutSeconds: 30,
  retry: { maxAttempts: 3, backoff: { kind: 'list' as const, seconds: [1] } },
};
const book = definePipeline({
  name: 'book',
  entity: { table: 'public.books', key: 'id', projection: 'none' },
  stages: {
    split: { kind: 'map', function: 'book-split', ...worked, child: { pipeline: 'pages' } },
    bind: { kind: 'function', function: 'book-bind', ...worked, needs: ['split'] },
  },
});

type Given = Iterable<unknown> | AsyncIterable<unknown>;

/** Runs a map over these items, as one attempt. */
function runMap(items: Given | ((context: HandlerContext) => Given | Promise<Given>), options: Options = {}) {
  const kept = keepChildren(5, options.before);
  const { context } = makeContext({}, { children: kept, ...options.context });
  const stage = defineMap({
    pipeline: book,
    stage: 'split',
    input: z.object({ entity: z.object({ id: z.number() }) }),
    item: z.object({ key: z.union([z.int(), z.string()]), text: z.string().optional() }),
    items: (_, given) => (typeof items === 'function' ? items(given) : items) as Iterable<{ key: number }>,
    chunkSize: options.chunkSize,
  });
  const outcome = Promise.resolve(stage.handler({ entity: { id: 1 } }, context));
  return { outcome, chunks: kept.chunks };
}
interface Options {
  chunkSize?: number;
  context?: Partial<HandlerContext>;
  before?: (items: ChildItem[], last: boolean) => void;
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => ({ key: i + 1 }));
async function failureOf(promise: Promise<unknown>) {
  return classify(
    await promise.then(
      () => expect.fail('no error was thrown'),
      (error: unknown) => error,
    ),
  );
}

describe('a map', () => {
  test('spawns its items in chunks, says which is the last, and waits for the children', async () => {
    const { outcome, chunks } = runMap(numbered(7), { chunkSize: 3 });
    expect(await outcome).toEqual({ service: 'children', jobId: '5' });
    expect(chunks.map(({ items, last }) => [items.map(({ key }) => key), last])).toEqual([
      [[1, 2, 3], false],
      [[4, 5, 6], false],
      [[7], true],
    ]);
  });

  test.each([0, 500])('closes the total with one chunk of %i items, too', async (count) => {
    const { outcome, chunks } = runMap(numbered(count));
    await outcome;
    expect(chunks).toEqual([{ items: numbered(count), last: true }]);
  });

  test('takes 500 items a chunk unless told otherwise', async () => {
    const { outcome, chunks } = runMap(numbered(1_201));
    await outcome;
    expect(chunks.map(({ items }) => items.length)).toEqual([500, 500, 201]);
  });

  test('sends chunks while its items are still being found', async () => {
    let seen = 0;
    const { outcome, chunks } = runMap(
      async function* () {
        for (const item of numbered(5)) {
          seen = chunks.length;
          yield item;
        }
      },
      { chunkSize: 2 },
    );
    await outcome;
    expect(chunks).toHaveLength(3);
    expect(seen).toBe(1);
  });

  test('keeps a request under a megabyte', async () => {
    const text = 'é'.repeat(150_000);
    const { outcome, chunks } = runMap(numbered(7).map((item) => ({ ...item, text })));
    await outcome;
    expect(chunks.map(({ items, last }) => [items.length, last])).toEqual([
      [2, false],
      [2, false],
      [2, false],
      [1, true],
    ]);
    for (const { items } of chunks) expect(Buffer.byteLength(JSON.stringify(items))).toBeLessThan(1_000_000);
  });

  test('sends what the item’s schema makes of it', async () => {
    const { outcome, chunks } = runMap([{ key: 'a', text: 'b', other: 1 }]);
    await outcome;
    expect(chunks[0]?.items).toEqual([{ key: 'a', text: 'b' }]);
  });

  test('stops between two chunks when its attempt is ended', async () => {
    const controller = new AbortController();
    const { outcome, chunks } = runMap(numbered(10), {
      chunkSize: 2,
      context: { signal: controller.signal },
      before: (items) => {
        if (items[0]?.key === 3) controller.abort(new Error('ended'));
      },
    });
    await expect(outcome).rejects.toThrow('ended');
    expect(chunks).toHaveLength(2);
  });
});

describe('an item that will not do fails the attempt for good, with its place and the remedy', () => {
  test.each<[string, unknown[], string, RegExp]>([
    [
      'a key twice',
      [{ key: 1 }, { key: 2 }, { key: '1' }],
      'duplicate_key',
      /items\[2\] has the key "1".*each its own/,
    ],
    ['no key', [{ key: 1 }, { text: 'x' }], 'invalid_item', /items\[1\]\.key.*found: undefined/],
    ['a NUL', [{ key: 1, text: 'a\u0000' }], 'invalid_item', /items\[0\]\.text.*Postgres cannot store: remove/],
    [
      'too much content',
      [{ key: 'big', text: 'x'.repeat(950_000) }],
      'item_too_large',
      /the key "big" has 950\d\d\d bytes.*Storage/,
    ],
  ])('%s', async (_, items, code, message) => {
    const { outcome, chunks } = runMap(items);
    expect(await failureOf(outcome)).toEqual({ code, message: expect.stringMatching(message), permanent: true });
    expect(chunks.filter(({ last }) => last)).toEqual([]);
  });
});

test('a map’s code belongs to a stage of the kind map', () => {
  const options = { pipeline: book, input: z.unknown(), item: z.object({ key: z.int() }), items: () => [] };
  expect(() => defineMap({ ...options, stage: 'bind' })).toThrow(/bind of pipeline book is of kind function/);
});

describe('spawning', () => {
  const wake = [{ pipeline: 'pages', stage: 'read', function: 'pages-read' }];
  const spawned = { status: 'spawned', fan_out: 5, spawned: 3, total: null, busy: [], wake };

  /** Children over an engine that gives these answers one after the other. */
  function answered(answers: (object | RpcAnswer)[], signal = new AbortController().signal) {
    const calls: Record<string, unknown>[] = [];
    const woken: unknown[] = [];
    const rpc = async (name: string, args: Record<string, unknown>): Promise<RpcAnswer> => {
      expect(name).toBe('millrace_spawn');
      calls.push(args);
      const next = answers.shift() ?? expect.fail('called too often');
      return 'error' in next ? (next as RpcAnswer) : { data: next, error: null, status: 200 };
    };
    const engine = createEngine({ rpc, retryUntil: () => Date.now() + 1_000, log: keepLog() });
    const waker = { wake: (stages: unknown[]) => void woken.push(...stages) };
    return { children: createChildren({ engine, waker, worker: 'w', item: makeItem(7), signal }), calls, woken };
  }

  test('shows the claim’s token, and wakes the children’s stages', async () => {
    const { children, calls, woken } = answered([spawned]);
    expect(await children.spawn(numbered(2), false)).toBe(5);
    const { attempt, token } = makeItem(7);
    expect(calls).toEqual([{ p_worker: 'w', p_attempt: attempt, p_token: token, p_items: numbered(2), p_last: false }]);
    expect(woken).toEqual(wake);
  });

  test('sends items whose rows are locked again, and these alone', async () => {
    const { children, calls } = answered([{ ...spawned, status: 'busy', busy: ['2', '3'] }, { ...spawned }]);
    await children.spawn(numbered(4), true);
    expect(calls.map(({ p_items, p_last }) => [(p_items as ChildItem[]).map(({ key }) => key), p_last])).toEqual([
      [[1, 2, 3, 4], true],
      [[2, 3], true],
    ]);
  });

  test('sends all again when somebody holds the parent', async () => {
    const { children, calls } = answered([{ status: 'busy', reason: 'locked', wake: [] }, spawned]);
    await children.spawn(numbered(2), true);
    expect(calls[1]).toEqual(calls[0]);
  });

  test('gives up on a locked row once its attempt is ended', async () => {
    const signal = AbortSignal.abort(new Error('ended'));
    const { children } = answered([{ ...spawned, status: 'busy', busy: ['1'] }], signal);
    await expect(children.spawn(numbered(1), true)).rejects.toThrow('ended');
  });

  test('learns when the attempt was taken away', async () => {
    const { children } = answered([{ status: 'stale', reason: 'the attempt was cancelled', wake: [] }]);
    await expect(children.spawn([], true)).rejects.toThrow(new LeaseLost('the attempt was cancelled'));
  });

  test.each([
    ['MR002', 'the fan-out has 100001 children, but one may have at most 100000', 'Spawn groups.'],
    ['22P02', 'invalid input syntax for type bigint: "a"', 'Correct it.'],
  ])('what the engine refuses (%s) fails the attempt for good, with its hint', async (code, message, hint) => {
    const { children } = answered([{ data: null, error: { message, code, hint }, status: 400 }]);
    expect(await failureOf(children.spawn(numbered(1), false))).toEqual({
      code: 'children_refused',
      message: `millrace_spawn: 400 ${message} — ${hint}`,
      permanent: true,
    });
  });

  test('an error of the project’s own insert function may pass, so the attempt is retried', async () => {
    const error = { message: 'there is no shelf yet', code: 'P0001' };
    const { children } = answered([{ data: null, error, status: 400 }]);
    expect(await failureOf(children.spawn(numbered(1), false))).toMatchObject({
      code: 'spawn_failed',
      message: 'The items could not be handed over just now.',
      detail: expect.stringContaining('there is no shelf yet'),
      permanent: false,
    });
  });

  test('a call without an answer is repeated, since items are known by their keys', async () => {
    const { children, calls } = answered([failedAnswer(503), spawned]);
    await children.spawn(numbered(1), true);
    expect(calls[1]).toEqual(calls[0]);
  });
});
