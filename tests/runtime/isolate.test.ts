// The CPU that an isolate has used up is reckoned, since the platform does not tell: it retires an isolate at a second of CPU and ends it
// without a word at two.
import { expect, test, vi } from 'vitest';
import { Isolate } from '../../supabase/functions/_millrace/worker/isolate.ts';

const here = async () => true;
const elsewhere = async () => false;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Rows that came and went. */
function spend(isolate: Isolate, rows: number, seenMs = 0): void {
  isolate.begin(rows);
  for (let row = 0; row < rows; row++) isolate.end(seenMs);
}

test('where nobody has learned what a row costs, it takes 6 ms: 250 rows are begun, and no more', () => {
  const isolate = new Isolate();
  expect(isolate.room()).toBe(250);
  isolate.begin(250);
  expect(isolate.room()).toBe(0);
});

test('an isolate begins with the row cost that isolates before it have learned', () => {
  const isolate = new Isolate();
  isolate.learn(30);
  expect(isolate.room()).toBe(50);
});

test('workers that ask at the same time share the room that there is', () => {
  const isolate = new Isolate();
  isolate.begin(200);
  expect([isolate.reserve(40), isolate.reserve(40)]).toEqual([40, 10]);
  isolate.unreserve(40);
  expect(isolate.room()).toBe(40);
});

test('the CPU that handlers are seen to use counts twice, since CPU after a pause is not seen; a few rows prove nothing', () => {
  const isolate = new Isolate();
  spend(isolate, 15, 15);
  expect(isolate.rowMs).toBe(6);
  spend(isolate, 1, 15);
  expect(isolate.rowMs).toBe(30);
});

test('rows that others on the machine held up do not make the rest look dear', () => {
  const isolate = new Isolate();
  spend(isolate, 8, 5);
  spend(isolate, 24, 50);
  expect(isolate.rowMs).toBe(100);
  spend(isolate, 8, 5);
  expect(isolate.rowMs).toBe(100);
  spend(isolate, 1, 5);
  expect(isolate.rowMs).toBe(10);
});

test('a request that arrives proves that less than a second is used, so rows cost less than was thought', () => {
  const isolate = new Isolate();
  spend(isolate, 250);
  isolate.arrived();
  expect(isolate.rowMs).toBe(4);
  expect(isolate.room()).toBe(125);
});

test('one row at a time fits into any isolate that still gets requests, however dear rows are', () => {
  const isolate = new Isolate();
  isolate.learn(2000);
  spend(isolate, 3);
  expect(isolate.room()).toBe(1);
  isolate.begin(1);
  expect(isolate.room()).toBe(0);
});

test('a probe that nobody answers tells nothing; after three a successor is better than none, until a request comes', async () => {
  const isolate = new Isolate();
  spend(isolate, 200);
  isolate.begin(1);
  let now = Date.now();
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  for (const retired of [false, false, true]) {
    isolate.look(async () => undefined);
    await settled();
    expect(isolate.retired).toBe(retired);
    isolate.look(() => Promise.reject(new Error('asked again at once')));
    now += 1000;
  }
  vi.restoreAllMocks();
  expect(isolate.rowMs).toBe(6);
  isolate.arrived();
  expect(isolate.retired).toBe(false);
});

test('of a row in hand, half of its cost may be yet to come', () => {
  const isolate = new Isolate();
  isolate.begin(250);
  for (let row = 0; row < 150; row++) isolate.end();
  isolate.arrived();
  expect(isolate.rowMs).toBe(5);
});

test('an isolate probes from nine tenths of a second on, and again after a tenth more', async () => {
  const isolate = new Isolate();
  let asked = 0;
  const probe = async () => {
    asked += 1;
    isolate.arrived();
    return true;
  };
  for (const [rows, times] of [
    [149, 0],
    [1, 1],
    [14, 1],
    [1, 2],
  ] as const) {
    spend(isolate, rows);
    isolate.look(probe);
    isolate.look(probe);
    await settled();
    expect(asked).toBe(times);
  }
});

test('a probe that ends up elsewhere tells that it is retired, and what a row costs; nothing more is begun', async () => {
  const isolate = new Isolate();
  let heard = 0;
  isolate.onLook(() => {
    heard += 1;
  });
  spend(isolate, 200);
  isolate.look(elsewhere);
  await settled();
  expect([heard, isolate.retired, isolate.room(), isolate.rowMs]).toEqual([1, true, 0, 5]);
  expect(isolate.costReport()).toMatchObject({ cpuMs: 5 });
});

test('an isolate reports the cost of a row once, and again only when it knows better', async () => {
  const isolate = new Isolate();
  spend(isolate, 200);
  expect(isolate.costReport()).toBeUndefined();
  isolate.look(here);
  isolate.arrived();
  expect(isolate.costReport()).toMatchObject({ cpuMs: 5 });
  expect(isolate.costReport()).toBeUndefined();
  spend(isolate, 200);
  isolate.arrived();
  expect(isolate.costReport()).toMatchObject({ cpuMs: 2.5 });
});

test('an isolate that still gets requests never runs out of room, however many rows it has had', async () => {
  const isolate = new Isolate();
  for (let round = 0; round < 50; round++) {
    spend(isolate, 100);
    isolate.arrived();
    isolate.look(() => {
      isolate.arrived();
      return here();
    });
    await settled();
    expect(isolate.room()).toBeGreaterThan(0);
  }
});
