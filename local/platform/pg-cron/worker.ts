// Runs the jobs of cron.job as pg_cron does: each as its own user in a session of its own, one instance at a time.
import type pg from 'pg';
import { keepSession, pause } from '../database/session.ts';
import { type Job, runJob, type UrlOf } from './run-job.ts';
import { parseSchedule, type Schedule } from './schedule.ts';

const tickMs = 250;

/** The state of a job that the worker keeps between two ticks. */
interface Task {
  job: Job;
  schedule: Schedule;
  lastStart: Date;
  /** When the calendar's next run is due; null when there is none any more. */
  due: Date | null;
  pending: number;
  /** Ends the run that is under way. */
  running: AbortController | null;
}

export interface PgCron {
  stop(): Promise<void>;
}

/** Starts the worker. It finds its own way back after a crash of Postgres, and waits for running jobs at its stop. */
export function startPgCron(urlOf: UrlOf, report: (message: string) => void): PgCron {
  const stopping = new AbortController();
  const tasks = new Map<string, Task>();
  const runs = new Set<Promise<void>>();
  let changed = true;
  const done = keepSession(urlOf('supabase_admin'), 'pg_cron', stopping.signal, report, async (client, over) => {
    await client.query(`set search_path = ''; listen pg_cron_changed`);
    client.on('notification', () => {
      changed = true;
    });
    changed = true;
    // Runs that were under way when the last session was lost hold up no later run.
    for (const task of tasks.values()) {
      task.running?.abort();
      task.running = null;
    }
    await client.query(
      `update cron.job_run_details set status = 'failed', return_message = 'server restarted'
        where status in ('starting', 'running')`,
    );
    while (!over.aborted) {
      if (changed) {
        changed = false;
        await readJobs(client, tasks, report);
      }
      for (const task of tasks.values()) {
        noticeDue(task, new Date());
        if (task.pending > 0 && !task.running) start(task, client);
      }
      await pause(tickMs, over);
    }
    // Waits for the runs, since this session records their outcomes.
    if (stopping.signal.aborted) await Promise.all(runs);
  });

  function start(task: Task, recorder: pg.Client) {
    task.pending -= 1;
    const removing = new AbortController();
    task.running = removing;
    task.lastStart = new Date();
    const run = runJob({ urlOf, recorder, job: task.job, stopping: stopping.signal, removed: removing.signal })
      .catch((error) => {
        // The extension may have gone, with its jobs.
        changed = true;
        report(`job ${task.job.jobid}: ${error}`);
      })
      .finally(() => {
        if (task.running === removing) task.running = null;
        runs.delete(run);
      });
    runs.add(run);
  }

  return {
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

async function readJobs(client: pg.Client, tasks: Map<string, Task>, report: (message: string) => void) {
  const { rows } = await client.query<Job>('select jobid, schedule, command, database, username, active from cron.job');
  const seen = new Set<string>();
  for (const job of rows) {
    if (!job.active) continue;
    seen.add(job.jobid);
    const known = tasks.get(job.jobid);
    if (known?.job.schedule === job.schedule) {
      known.job = job;
      continue;
    }
    try {
      const now = new Date();
      const schedule = parseSchedule(job.schedule);
      const due = schedule.kind === 'calendar' ? schedule.next(now) : null;
      tasks.set(job.jobid, { lastStart: now, pending: 0, running: null, ...known, job, schedule, due });
    } catch (error) {
      report(`job ${job.jobid}: schedule "${job.schedule}": ${error}`);
      await client.query('update cron.job set active = false where jobid = $1', [job.jobid]);
    }
  }
  for (const [jobid, { running }] of tasks) {
    if (seen.has(jobid)) continue;
    running?.abort();
    tasks.delete(jobid);
  }
}

/** Counts a run that fell due. Missed minutes queue up behind a long run; missed seconds make one run. */
function noticeDue(task: Task, now: Date): void {
  const { schedule } = task;
  if (schedule.kind === 'interval') {
    if (task.pending === 0 && now.getTime() - task.lastStart.getTime() >= schedule.milliseconds) task.pending = 1;
    return;
  }
  if (task.due === null || task.due > now) return;
  task.pending += 1;
  task.due = schedule.next(now);
}
