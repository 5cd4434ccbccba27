// The behaviour of a function at each limit of the platform: the table of docs/local-stack.md, row by row.
import fs from 'node:fs';
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createFunctionsHost, type FunctionsHost } from '../../local/platform/functions/host.ts';
import { type FunctionLimits, hostedLimits } from '../../local/platform/functions/limits.ts';
import { until } from '../support/until.ts';

const folder = path.join(import.meta.dirname, 'functions');
const held: http.ServerResponse[] = [];
const gate = http.createServer((_, response) => held.push(response));
let host: FunctionsHost;
let server: http.Server;

beforeEach(() => new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve)));
afterEach(async () => {
  openGate();
  gate.close();
  server.close();
  await host.stop();
});

const portOf = (listening: http.Server) => (listening.address() as AddressInfo).port;
const openGate = () => {
  for (const response of held.splice(0)) response.end();
};

/** Starts a host whose limits no test reaches, but those given. */
async function open(limits: Partial<FunctionLimits> = {}): Promise<void> {
  const roomy = { ...hostedLimits, cpuSoftMs: 60_000, cpuHardMs: 120_000, memoryMb: 2000 };
  const env = { GATE_URL: `http://127.0.0.1:${portOf(gate)}` };
  host = createFunctionsHost({ folder, env, limits: { ...roomy, ...limits } });
  server = http.createServer((request, response) => {
    void host.handle('listener', request.url as string, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}

const call = (what: string) => fetch(`http://127.0.0.1:${portOf(server)}/listener/${what}`);
const statusOf = async (what: string) => (await call(what)).status;
const lines = () => host.logs('listener').filter((line) => !line.startsWith('Warning'));
const first = () => host.pids('listener')[0] as number;
const isGone = (pid: number) => until(() => !host.pids('listener').includes(pid), 20_000);
const atTheGate = () => until(() => held.length > 0, 20_000);

/** Whether a new request is answered by the process that has been there. */
async function takesRequests(): Promise<boolean> {
  const before = host.pids('listener');
  expect(await statusOf('')).toBe(200);
  return host.pids('listener').every((pid) => before.includes(pid));
}

/** Lets what is under way go on, and waits until the process has gone. Returns what it wrote from then on. */
async function finish(pid: number): Promise<string[]> {
  const before = lines().length;
  openGate();
  await isGone(pid);
  return lines().slice(before);
}

describe.runIf(process.platform === 'linux')(
  'at the soft limit of CPU, a function hears nothing and gets no new request',
  () => {
    it('while its background work goes on, after which it is dropped', async () => {
      await open({ cpuSoftMs: 50 });
      await call('promise/some,gate');
      const pid = first();
      await atTheGate();
      expect(await takesRequests()).toBe(false);
      expect(lines()).toEqual([]);
      expect(await finish(pid)).toEqual(['finishes', 'hears early_drop']);
    });

    it('while its request goes on and is answered, after which it hears drain and is dropped', async () => {
      await open({ cpuSoftMs: 50 });
      const answer = statusOf('request/some,gate');
      await atTheGate();
      const pid = first();
      expect(await takesRequests()).toBe(false);
      expect(lines()).toEqual([]);
      expect(await finish(pid)).toEqual(['finishes', 'hears drain', 'hears early_drop']);
      expect(await answer).toBe(200);
    });
  },
);

it.runIf(process.platform === 'linux')(
  'a function with many short requests is looked at ten times a second',
  async () => {
    await open();
    await call('');
    const looks = `/proc/${first()}/status`;
    const spy = vi.spyOn(fs, 'readFileSync');
    syncBuiltinESMExports();
    try {
      const began = performance.now();
      while (performance.now() - began < 600) {
        await call('');
        await sleep(15);
      }
      const most = (performance.now() - began) / 100 + 1;
      const found = spy.mock.calls.filter(([file]) => file === looks).length;
      expect(found).toBeGreaterThan(0);
      expect(found).toBeLessThanOrEqual(most);
    } finally {
      spy.mockRestore();
      syncBuiltinESMExports();
    }
  },
);

describe.runIf(process.platform === 'linux')('at the hard limit of CPU, a function', () => {
  it('hears of it at nine tenths between two turns, and goes on', async () => {
    await open({ cpuSoftMs: 100, cpuHardMs: 1500 });
    await call('promise/burn,gate');
    const pid = first();
    await atTheGate();
    expect(lines()).toEqual(['hears cpu']);
    expect(await takesRequests()).toBe(false);
    expect(await finish(pid)).toEqual(['finishes', 'hears early_drop']);
  });

  it('is ended without a word in the turn that passes it, and its caller is told with 546', async () => {
    await open({ cpuSoftMs: 200, cpuHardMs: 400 });
    const answer = await call('request/stall');
    expect([answer.status, (await answer.json()).code]).toEqual([546, 'WORKER_LIMIT']);
    expect(lines()).toEqual(['ended by the platform’s limit: cpu']);
    expect(await statusOf('')).toBe(200);
  });

  it('hears nothing at all where the platform does not announce it', async () => {
    await open({ cpuSoftMs: 100, cpuHardMs: 500, announcesCpuAndMemory: false });
    expect(await statusOf('request/burn')).toBe(546);
    expect(lines()).toEqual(['ended by the platform’s limit: cpu']);
  });
});

describe.runIf(process.platform === 'linux')('at the limit of memory, a function', () => {
  it('is dropped with half of it as soon as it is idle', async () => {
    await open({ memoryMb: 120 });
    await call('promise/half,gate');
    const pid = first();
    await atTheGate();
    expect(await takesRequests()).toBe(true);
    expect(lines()).toEqual([]);
    expect(await finish(pid)).toEqual(['finishes', 'hears early_drop']);
  });

  it('hears of it at nine tenths between two turns, goes on, and takes requests', async () => {
    await open({ memoryMb: 120 });
    await call('promise/grow,gate');
    const pid = first();
    await atTheGate();
    expect(lines()).toEqual(['hears memory']);
    expect(await takesRequests()).toBe(true);
    expect(await finish(pid)).toEqual(['finishes', 'hears early_drop']);
  });

  it.each(['flood', 'pile'])('is ended without a word in the turn that passes it by a %s: 546', async (step) => {
    await open({ memoryMb: 120 });
    expect(await statusOf(`request/${step}`)).toBe(546);
    expect(lines().at(-1)).toBe('ended by the platform’s limit: memory');
    expect(lines().filter((line) => line.startsWith('hears'))).toEqual([]);
  });

  it('hears nothing at all where the platform does not announce it', async () => {
    await open({ memoryMb: 120, announcesCpuAndMemory: false });
    expect(await statusOf('request/grow')).toBe(546);
    expect(lines()).toEqual(['ended by the platform’s limit: memory']);
  });
});

describe('with its time on the wall clock, a function', () => {
  it('gets no new request after half, hears of it at nine tenths, and is ended at its end', async () => {
    await open({ wallClockMs: 6000 });
    const answer = statusOf('request/gate');
    await atTheGate();
    const pid = first();
    await until(async () => !(await takesRequests()));
    expect(lines()).toEqual([]);
    await until(() => lines().includes('hears wall_clock'));
    expect(host.pids('listener')).toContain(pid);
    await isGone(pid);
    expect(await answer).toBe(546);
    expect(lines().slice(0, 2)).toEqual(['hears wall_clock', 'ended by the platform’s limit: wall_clock']);
  });

  it('is dropped after half as soon as it is idle', async () => {
    await open({ wallClockMs: 6000 });
    await call('');
    await isGone(first());
    expect(lines()).toEqual(['hears early_drop']);
  });
});

describe('a function that gets no new request', () => {
  it('hears drain once its last request has ended, and is dropped once its background work has', async () => {
    await open();
    const answers = [statusOf('request/gate'), call('promise/gate')];
    await until(() => held.length === 2);
    const pid = first();
    host.retire('listener');
    expect(lines()).toEqual([]);
    expect(await finish(pid)).toEqual(
      expect.arrayContaining(['finishes', 'hears drain', 'finishes', 'hears early_drop']),
    );
    expect(lines().at(-1)).toBe('hears early_drop');
    await Promise.all(answers);
  });

  it('hears no drain when its requests had ended before', async () => {
    await open();
    await call('promise/gate');
    const pid = first();
    host.retire('listener');
    await atTheGate();
    expect(await finish(pid)).toEqual(['finishes', 'hears early_drop']);
  });

  it('stays until a limit ends it when it waits for a promise that had settled before', async () => {
    await open({ wallClockMs: 3000 });
    await call('settled');
    await isGone(first());
    expect(lines()).toEqual(['hears wall_clock', 'ended by the platform’s limit: wall_clock']);
  });
});

describe('when the platform stops, a function', () => {
  it('hears drain and is dropped when it is idle', async () => {
    await open();
    await call('');
    await host.stop();
    expect(lines()).toEqual(['hears drain', 'hears early_drop']);
  });

  it('hears drain, and early_drop once what is under way has ended', async () => {
    await open();
    await call('promise/gate');
    await atTheGate();
    const stopped = host.stop();
    await until(() => lines().includes('hears drain'));
    openGate();
    await stopped;
    expect(lines()).toEqual(['hears drain', 'finishes', 'hears early_drop']);
    expect(await statusOf('')).toBe(503);
  });

  it('hears drain alone when it is still busy at the end of the grace', async () => {
    await open();
    const answer = statusOf('request/gate');
    await atTheGate();
    await host.stop();
    expect(lines()).toEqual(['hears drain']);
    expect(await answer).toBe(500);
  });
});

it('a function is not told the CPU time it has used, nor the memory outside its isolate', async () => {
  await open();
  const { cpu, memory } = await (await call('told')).json();
  expect(cpu).toEqual({ user: 0, system: 0 });
  expect(memory).toEqual({
    rss: 0,
    heapTotal: expect.any(Number),
    heapUsed: expect.any(Number),
    external: expect.any(Number),
  });
  expect(host.logs('listener')).toEqual(['Warning: Not implemented: process.cpuUsage()']);
});

it('a function cannot end itself', async () => {
  await open();
  expect(await statusOf('exit')).toBe(200);
  expect(await takesRequests()).toBe(true);
});
