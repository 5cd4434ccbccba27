// Parents and children whose functions, messages or database die at the worst moment.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Fate, gate } from '../support/faults/fault-proxy.ts';
import { engineCall, outcomesOf, PatternsStack } from '../support/stack/patterns-stack.ts';

let stack: PatternsStack;
beforeAll(async () => {
  stack = await PatternsStack.start();
});
afterEach(() => stack.expectSound());
afterAll(() => stack.stop());

const once = ['split 1 completed', 'publish 1 completed'];
const twice = ['split 1 failed lost_lease', 'split 2 completed', 'publish 1 completed'];

/** Fails the test unless an album was split into so many tracks, each done once, and published with all of them. */
async function expectPublished(run: string, size: number, attempts: string[]): Promise<void> {
  expect(await stack.attempts(run)).toEqual(attempts);
  expect(await stack.result(run, 'split')).toEqual({ total: size, completed: size, failed: 0, cancelled: 0 });
  expect(
    await stack.leads.rows(
      `select count(*)::int, count(distinct r.item_key)::int as keys, count(distinct r.fan_out_id)::int as fan_outs, sum(o.results)::int as results
       from millrace.fan_outs f join millrace.runs r on r.fan_out_id = f.id and r.status = 'completed'
       cross join lateral (select count(a.output) as results from millrace.attempts a where a.run_id = r.id) o
       where f.run_id = $1`,
      [run],
    ),
  ).toEqual([{ count: size, keys: size, fan_outs: 1, results: size }]);
}

test.each(['before', 'after'] as const)(
  'a map that is killed %s its second chunk is spawned is followed by one that spawns what is missing',
  async (when) => {
    const run = await stack.kill(
      'album-split',
      when,
      ({ name, args }) => name === 'millrace_spawn' && keyOf(args) === 3,
      () => stack.begin('album', { size: 5 }),
    );
    expect(await stack.leads.value('select spawned from millrace.fan_outs where run_id = $1', [run])).toBe(
      when === 'before' ? 2 : 4,
    );
    await stack.recover();
    await expectPublished(run, 5, twice);
    expect(new Set(stack.told.map(({ what }) => what)).size).toBe(6);
  },
);

test('a map that is killed when all is spawned and done, before it says that it waits, is joined by the next one', async () => {
  const run = await stack.kill(
    'album-split',
    'before',
    (call) => call.name === 'millrace_complete' && outcomesOf(call).includes('waiting'),
    () => stack.begin('album', { size: 4 }),
    async (run) => (await stack.children([run], 'completed')) === 4,
  );
  expect(await stack.attempts(run)).toEqual(['split 1 started']);
  await stack.recover();
  await expectPublished(run, 4, twice);
  expect(stack.told).toHaveLength(5);
});

test('the reports of a worker that is killed after its commit and before it collects are added up by the sweep', async () => {
  const run = await stack.kill(
    'tracks-left',
    'before',
    ({ name }) => name === 'millrace_collect_children',
    () => {
      // Every worker of a parent or a child collects what it finds reported: here the one that is killed is to be the only one.
      stack.leads.proxies.toProject.decide = (call) =>
        engineCall(call)?.name === 'millrace_collect_children'
          ? { status: 200, json: { wake: [], busy: [], collect: [] } }
          : 'pass';
      return stack.begin('album', { size: 1 });
    },
    async (run) =>
      (await stack.attempts(run))[0] === 'split 1 waiting' && (await stack.children([run], 'completed')) === 1,
  );
  expect(await stack.attempts(run)).toEqual(['split 1 waiting']);
  await stack.recover();
  await expectPublished(run, 1, once);
});

test.each([{ status: 503, json: {} }, 'lose answer'] as const)(
  'collects that come to %j are made good by the sweep',
  async (fate) => {
    let lost = 0;
    stack.intercept(({ name }) => {
      if (name !== 'millrace_collect_children') return 'pass';
      lost += 1;
      return fate;
    });
    const run = await stack.begin('album', { size: 3 });
    await stack.until('the children are done', async () => (await stack.children([run], 'completed')) === 3);
    await stack.until('the collects are lost', async () => lost > 0);
    await stack.leads.advance('10 seconds');
    await stack.settled(() => stack.leads.sweep());
    await expectPublished(run, 3, once);
  },
);

/** Albums of two tracks whose ends are on their way to the database at once, from two processes; their collects wait for `open`. */
async function endingAtOnce(albums: number): Promise<{ runs: string[]; open: () => void }> {
  const handlers = gate();
  const ends = gate();
  const collects = gate();
  const workers = new Set();
  stack.hear = (what) => (/left|right/.test(what) ? handlers.passed : Promise.resolve());
  const runs = await Promise.all(Array.from({ length: albums }, () => stack.begin('album', { size: 2 })));
  await stack.until('all tracks are in work', async () => stack.told.length === 2 * albums);
  await stack.until('all albums wait', async () => (await waitingAlbums(runs)) === albums);
  stack.intercept(async (call): Promise<Fate> => {
    if (call.name === 'millrace_collect_children') await collects.passed;
    if (call.name === 'millrace_complete' && outcomesOf(call).includes('completed')) {
      workers.add(call.args.p_worker);
      if (workers.size === 2) ends.open();
      await ends.passed;
    }
    return 'pass';
  });
  handlers.open();
  await stack.until('all are done', async () => (await stack.children(runs, 'completed')) === 2 * albums);
  return { runs, open: collects.open };
}

test('last children that end at once in two processes are joined once, without the help of the sweep', async () => {
  const { runs, open } = await endingAtOnce(4);
  open();
  await stack.settled();
  for (const run of runs) await expectPublished(run, 2, once);
});

test('of two processes whose last children end at once, one is killed before it collects and the other joins for both', async () => {
  const { runs, open } = await endingAtOnce(4);
  // The job that it had asked for never comes to anything.
  stack.toProjectFromLeft.target = 'http://127.0.0.1:9';
  await stack.leads.stack.functions.kill('tracks-left');
  open();
  await stack.settled();
  for (const run of runs) await expectPublished(run, 2, once);
  stack.toProjectFromLeft.target = stack.leads.stack.apiUrl;
  // A dead worker counts as live until its heartbeat is old.
  await stack.leads.advance('2 minutes');
});

test('a parent cancelled while its children are in work takes them along, and their workers hear that they are too late', async () => {
  const handlers = gate();
  stack.hear = () => handlers.passed;
  const run = await stack.begin('album', { size: 4 });
  await stack.until('all tracks are in work', async () => stack.told.length === 4);
  await stack.leads.rows('select millrace.cancel($1)', [run]);
  await stack.leads.sweep();
  expect(await stack.children([run], 'cancelled')).toBe(4);
  handlers.open();
  for (const name of ['tracks-left', 'tracks-right']) {
    await stack.until(`${name} has learned it`, async () =>
      stack.leads.stack.functions
        .logs(name)
        .some((line) => /outcome was not taken.*cancelled|leases were lost/.test(line)),
    );
  }
  expect(await stack.leads.value('select count(*)::int from millrace.fan_outs where run_id = $1', [run])).toBe(1);
  expect((await stack.attempts(run))[0]).toMatch(/^split 1 cancelled/);
  expect(stack.told).toHaveLength(4);
});

test('a parent cancelled between two chunks spawns no more, and what it spawned is cancelled', async () => {
  const handlers = gate();
  let cancelled = 0;
  stack.hear = () => handlers.passed;
  let run = '';
  stack.intercept(async ({ name, args }): Promise<Fate> => {
    if (name === 'millrace_spawn' && keyOf(args) === 3) {
      await stack.until('the first children are in work', async () => stack.told.length === 2);
      await stack.leads.rows('select millrace.cancel($1)', [run]);
      cancelled += 1;
    }
    return 'pass';
  });
  run = await stack.begin('album', { size: 6 });
  await stack.until('it is cancelled', async () => cancelled > 0);
  await stack.settled(() => stack.leads.sweep());
  handlers.open();
  await stack.until('the map has left', async () =>
    stack.leads.value(
      `select not exists (select from millrace.workers w join millrace.stages s on s.id = w.stage_id
       where s.name = 'split' and w.left_at is null and w.heartbeat_at > millrace.now() - interval '15 seconds')`,
    ),
  );
  expect(await stack.children([run], 'cancelled')).toBe(2);
  expect(cancelled).toBe(1);
});

test('when Postgres is killed with -9 while children end, and started again, each of them counts once', async () => {
  const { postgres } = stack.leads.stack;
  const handlers = gate();
  const dying = gate();
  stack.hear = (what) => (/left|right/.test(what) && stack.told.length > 2 ? handlers.passed : Promise.resolve());
  // The tallies that the first children have reported are not added up before the crash.
  stack.intercept(({ name }) => (name === 'millrace_collect_children' ? { status: 503, json: {} } : 'pass'));
  const run = await stack.begin('album', { size: 12 });
  await stack.until('some are done', async () => (await stack.children([run], 'completed')) === 2);
  await stack.until('all are in work', async () => stack.told.length === 12);
  stack.intercept(({ name }) => {
    if (name === 'millrace_complete') dying.open();
    return 'pass';
  });
  handlers.open();
  await dying.passed;
  await postgres.kill9();
  await postgres.start();
  await stack.settled(() => stack.leads.sweep());
  await expectPublished(run, 12, once);
});

/** The key of the first item of a chunk. */
function keyOf(args: Record<string, unknown>): number | undefined {
  return (args.p_items as { key: number }[])[0]?.key;
}

async function waitingAlbums(runs: string[]): Promise<number> {
  return stack.leads.value(
    `select count(*)::int from millrace.attempts a where a.run_id = any ($1) and a.state = 'waiting'`,
    [runs],
  );
}
