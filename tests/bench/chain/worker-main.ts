// One worker process. The process that measures sends a task, then "go", then "stop".
import type { Engine, Task, Worker } from '../engine.ts';

export type Order = { seed: Task } | { open: Task } | 'go' | 'stop';
export type News = 'ready' | { finished: number } | { failed: string };

const stopping = new AbortController();
let worker: Worker | undefined;
const tell = (news: News) => process.send?.(news);

async function load({ work, engine }: Task): Promise<Engine> {
  const folder = work === 'chain' ? 'engines' : 'fan-out/engines';
  return (await import(`../${folder}/${engine}.ts`)).engine;
}

async function obey(order: Order): Promise<void> {
  if (order === 'go') {
    await worker?.run(stopping.signal, (finished) => tell({ finished }));
    await worker?.close();
    process.disconnect();
  } else if (order === 'stop') {
    stopping.abort();
  } else if ('seed' in order) {
    await (await load(order.seed)).seed(order.seed);
    tell('ready');
  } else {
    worker = await (await load(order.open)).open(order.open);
    tell('ready');
  }
}

process.on('message', (order: Order) => {
  obey(order).catch((error: unknown) => {
    tell({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    process.exitCode = 1;
    process.disconnect();
  });
});
process.on('disconnect', () => stopping.abort());
