// pg-boss with its batch calls: one queue a stage, and in one transaction a batch is completed, put into the next queue,
// and the next batch is fetched. complete() takes one output for all jobs of a batch, so each entity's result travels in
// its next job's data; only the last stage's is given as output.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { type Engine, stageNames, stageResult, type Task, type Worker } from '../engine.ts';

interface Entity {
  entity: number;
  result?: typeof stageResult;
}

/** A session, and a pg-boss that does everything in it. */
export async function connect({ urls }: Task): Promise<{ client: pg.Client; boss: PgBoss }> {
  const client = new pg.Client({ connectionString: urls.owner });
  await client.connect();
  const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) };
  const boss = new PgBoss({ db, supervise: false, schedule: false });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  return { client, boss };
}

/** Closes what connect() opened. */
export async function close(client: pg.Client, boss: PgBoss): Promise<void> {
  await boss.stop({ graceful: false });
  await client.end();
}

/** Removes what an earlier round left. */
export async function dropSchema({ urls }: Task): Promise<void> {
  const owner = new pg.Client({ connectionString: urls.owner });
  await owner.connect();
  await owner.query('drop schema if exists pgboss cascade');
  await owner.end();
}

async function seed(task: Task): Promise<void> {
  await dropSchema(task);
  const { client, boss } = await connect(task);
  for (const name of stageNames) await boss.createQueue(name);
  await boss.insert(
    stageNames[0],
    Array.from({ length: task.entities }, (_, entity) => ({ data: { entity } satisfies Entity })),
  );
  // No analyze: told that all jobs are in the first queue, the planner would join badly in all the others.
  await close(client, boss);
}

async function open(task: Task): Promise<Worker> {
  const { client, boss } = await connect(task);
  const batchSize = task.batch;

  async function step(index: number, jobs: { id: string; data: Entity }[]) {
    const name = stageNames[index] as string;
    const next = stageNames[index + 1];
    await client.query('begin');
    await boss.complete(
      name,
      jobs.map(({ id }) => id),
      next ? null : stageResult,
    );
    if (next) {
      await boss.insert(
        next,
        jobs.map(({ data }) => ({ data: { entity: data.entity, result: stageResult } satisfies Entity })),
      );
    }
    const following = await boss.fetch<Entity>(name, { batchSize });
    await client.query('commit');
    return following;
  }
  return {
    async run(signal, finished) {
      while (!signal.aborted) {
        let idle = true;
        for (const [index, name] of stageNames.entries()) {
          for (let jobs = await boss.fetch<Entity>(name, { batchSize }); jobs.length > 0; ) {
            const next = await step(index, jobs);
            if (index === stageNames.length - 1) finished(jobs.length);
            idle = false;
            jobs = next;
          }
        }
        if (idle) await delay(1);
      }
    },
    close: () => close(client, boss),
  };
}

export const engine: Engine = { seed, open };
