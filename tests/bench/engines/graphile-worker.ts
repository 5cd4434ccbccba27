// graphile-worker as its manual's page on performance has it for many short jobs: a local queue, batched completions and
// prepared statements. It has no batch of different jobs and no results, so each task stores its result and adds the next
// task in one statement of its own.
import { Logger, run, runMigrations, type TaskList } from 'graphile-worker';
import pg from 'pg';
import { type Engine, stageNames, stageResult, type Task, type Worker } from '../engine.ts';

export const quiet = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message);
});

const results = `
create table bench_results (entity_id bigint not null, stage text not null, result jsonb not null, primary key (entity_id, stage))`;

async function seed({ urls, entities }: Task): Promise<void> {
  const owner = new pg.Client({ connectionString: urls.owner });
  await owner.connect();
  await owner.query('drop schema if exists graphile_worker cascade');
  await runMigrations({ connectionString: urls.owner, logger: quiet });
  await owner.query(`drop table if exists bench_results; ${results}`);
  await owner.query(
    `select from graphile_worker.add_jobs(array(
       select row($1, json_build_object('entity', i), null, null, null, null, null, null)::graphile_worker.job_spec
       from generate_series(1, $2::int) i))`,
    [stageNames[0], entities],
  );
  await owner.query('vacuum analyze graphile_worker._private_jobs');
  await owner.end();
}

/** Runs tasks, so many at a time, until the signal is given. */
export async function runTasks(
  connectionString: string,
  concurrentJobs: number,
  signal: AbortSignal,
  taskList: TaskList,
): Promise<void> {
  const runner = await run({
    connectionString,
    logger: quiet,
    noHandleSignals: true,
    taskList,
    preset: {
      worker: {
        concurrentJobs,
        maxPoolSize: concurrentJobs + 2,
        pollInterval: 100,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await runner.stop();
}

async function open({ urls, batch }: Task): Promise<Worker> {
  const counter = { finished: (_entities: number) => {} };
  const taskList = Object.fromEntries(
    stageNames.map((name, index) => {
      const next = stageNames[index + 1];
      const store = 'insert into bench_results values ($1, $2, $3)';
      const text = next ? `with stored as (${store}) select from graphile_worker.add_job($4, $5)` : store;
      return [
        name,
        async (payload: unknown, { withPgClient }: Parameters<TaskList[string]>[1]) => {
          const { entity } = payload as { entity: number };
          const stored = [entity, name, JSON.stringify(stageResult)];
          const values = next ? [...stored, next, { entity }] : stored;
          await withPgClient((client) => client.query({ name: next ? 'store and add' : 'store', text, values }));
          if (!next) counter.finished(1);
        },
      ];
    }),
  );
  return {
    async run(signal, finished) {
      counter.finished = finished;
      await runTasks(urls.owner, batch, signal, taskList);
    },
    async close() {},
  };
}

export const engine: Engine = { seed, open };
