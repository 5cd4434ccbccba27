import { expect, test } from 'vitest';
import { oneAtATime } from '../../supabase/functions/_services/one-at-a-time.ts';

const heard = new AbortController().signal;

test('work is begun when what was given before has ended, also where that failed', async () => {
  const steps: string[] = [];
  let end = () => {};
  const first = oneAtATime(heard, async () => {
    steps.push('first begins');
    await new Promise<void>((resolve) => {
      end = resolve;
    });
    steps.push('first ends');
    throw new Error('damaged');
  });
  const second = oneAtATime(heard, async () => steps.push('second'));
  await Promise.resolve();
  expect(steps).toEqual(['first begins']);
  end();
  await expect(first).rejects.toThrow('damaged');
  await second;
  expect(steps).toEqual(['first begins', 'first ends', 'second']);
});

test('work whose time is over before its turn is left out', async () => {
  const controller = new AbortController();
  const steps: string[] = [];
  const first = oneAtATime(heard, async () => controller.abort(new Error('over')));
  const second = oneAtATime(controller.signal, async () => steps.push('second'));
  await first;
  await expect(second).rejects.toThrow('over');
  await oneAtATime(heard, async () => steps.push('third'));
  expect(steps).toEqual(['third']);
});

test('work that does not sweepIfDue its signal holds up nobody once it is aborted', async () => {
  const controller = new AbortController();
  const steps: string[] = [];
  void oneAtATime(controller.signal, () => new Promise(() => {}));
  const second = oneAtATime(heard, async () => steps.push('second'));
  controller.abort();
  await second;
  expect(steps).toEqual(['second']);
});

test('work that is aborted while it waits lets nobody pass what still runs', async () => {
  const controller = new AbortController();
  const steps: string[] = [];
  let end = () => {};
  const first = oneAtATime(heard, async () => {
    await new Promise<void>((resolve) => {
      end = resolve;
    });
    steps.push('first ends');
  });
  const second = oneAtATime(controller.signal, async () => steps.push('second'));
  const third = oneAtATime(heard, async () => steps.push('third'));
  controller.abort(new Error('over'));
  await new Promise((resolve) => setImmediate(resolve));
  end();
  await Promise.all([first, third, expect(second).rejects.toThrow('over')]);
  expect(steps).toEqual(['first ends', 'third']);
});
