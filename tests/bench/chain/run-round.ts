// One round of the chain or the fan-out: seeds, starts the worker processes, and measures from "go" until the last entity
// is through, or the join is ready.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Task } from '../engine.ts';
import type { News, Order } from './worker-main.ts';

const main = path.join(import.meta.dirname, 'worker-main.ts');

/** Runs one round with `workers` processes of the Node program `node`; returns its duration in seconds. */
export async function runRound(node: string, task: Task, workers: number): Promise<number> {
  const processes = Array.from({ length: workers }, () => {
    // Not tsx: this Node reads TypeScript itself, parameter properties where it is told to.
    return fork(main, {
      execPath: node,
      execArgv: ['--experimental-transform-types', '--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
  });
  const failure = new Promise<never>((_, reject) => {
    for (const child of processes) {
      child.on('message', (news: News) => {
        if (typeof news === 'object' && 'failed' in news) reject(new Error(`${task.engine}: ${news.failed}`));
      });
      child.once('error', reject);
      child.once('exit', (code) => {
        if (code) reject(new Error(`${task.engine}: a worker process ended with exit code ${code}.`));
      });
    }
  });
  failure.catch(() => {});
  try {
    await Promise.race([order(processes.slice(0, 1), { seed: task }), failure]);
    await Promise.race([order(processes, { open: task }), failure]);
    const started = performance.now();
    const done = allFinished(processes, task.entities);
    for (const child of processes) child.send('go' satisfies Order);
    await Promise.race([done, failure]);
    return (performance.now() - started) / 1000;
  } finally {
    await Promise.all(processes.map(end));
  }
}

/** Sends an order and waits until each process says that it is ready. */
async function order(processes: ChildProcess[], what: Order): Promise<void> {
  await Promise.all(
    processes.map((child) => {
      const ready = new Promise<void>((resolve) => {
        const listen = (news: News) => {
          if (news !== 'ready') return;
          child.off('message', listen);
          resolve();
        };
        child.on('message', listen);
      });
      child.send(what);
      return ready;
    }),
  );
}

function allFinished(processes: ChildProcess[], entities: number): Promise<void> {
  let left = entities;
  return new Promise((resolve) => {
    for (const child of processes) {
      child.on('message', (news: News) => {
        if (typeof news !== 'object' || !('finished' in news)) return;
        left -= news.finished;
        if (left <= 0) resolve();
      });
    }
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  // It may be going at this moment, having failed: what it said of that is worth more than that it cannot be told.
  if (child.connected) child.send('stop' satisfies Order, () => {});
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await gone;
  clearTimeout(late);
}
