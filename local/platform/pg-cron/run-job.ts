// One run of a job, and its row in cron.job_run_details.
import pg from 'pg';
import type { Job, UrlOf } from './worker.ts';

const rolesThatLogIn = ['postgres', 'supabase_admin'];

export interface JobRun {
  urlOf: UrlOf;
  /** The worker's own session, which writes down what becomes of the run. */
  recorder: pg.Client;
  job: Job;
  signal: AbortSignal;
}

/** Runs the job's command as its user. Records a failing command; throws only when the session is lost. */
export async function runJob({ urlOf, recorder, job, signal }: JobRun): Promise<void> {
  const { rows } = await recorder.query<{ runid: string }>(
    `insert into cron.job_run_details (jobid, database, username, command, status)
     values ($1, $2, $3, $4, 'starting') returning runid`,
    [job.jobid, job.database, job.username, job.command],
  );
  const runid = rows[0]?.runid;
  const login = rolesThatLogIn.includes(job.username) ? job.username : 'supabase_admin';
  const session = await connect(urlOf(login, job.database)).catch(() => null);
  if (!session) {
    // Without times, as pg_cron leaves it.
    await recorder.query(
      `update cron.job_run_details set status = 'failed', return_message = 'connection failed' where runid = $1`,
      [runid],
    );
    return;
  }
  const stop = () => void session.end().catch(() => {});
  signal.addEventListener('abort', stop);
  try {
    if (login !== job.username) {
      await session.query(`set session authorization ${pg.escapeIdentifier(job.username)}`);
    }
    await recorder.query(
      `update cron.job_run_details set status = 'running', job_pid = $2, start_time = clock_timestamp()
        where runid = $1`,
      [runid, (session as unknown as { processID: number }).processID],
    );
    const [status, message] = await outcome(session, job.command);
    await recorder.query(
      `update cron.job_run_details set status = $2, return_message = $3, end_time = clock_timestamp()
        where runid = $1`,
      [runid, status, message],
    );
  } finally {
    signal.removeEventListener('abort', stop);
    await session.end().catch(() => {});
  }
}

async function outcome(session: pg.Client, command: string): Promise<['succeeded' | 'failed', string]> {
  try {
    const results = await session.query(command);
    const last: pg.QueryResult = Array.isArray(results) ? results.at(-1) : results;
    if (last.command === 'SELECT') return ['succeeded', `${last.rowCount} row${last.rowCount === 1 ? '' : 's'}`];
    return ['succeeded', [last.command, last.rowCount].filter((part) => part !== null).join(' ')];
  } catch (error) {
    return ['failed', `ERROR:  ${(error as Error).message}\n`];
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'pg_cron' });
  client.on('error', () => {});
  await client.connect();
  return client;
}
