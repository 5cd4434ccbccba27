// One run of a job, and its row in cron.job_run_details.
import pg from 'pg';
import { connectionTimeoutMillis } from '../database/session.ts';

export interface Job {
  jobid: string;
  schedule: string;
  command: string;
  database: string;
  username: string;
  active: boolean;
}

/** Connection URL of a role in a database. */
export type UrlOf = (role: string, database?: string) => string;

const rolesThatLogIn = ['postgres', 'supabase_admin'];

/** Fields of pg's client that its types do not declare. */
interface Internals {
  processID: number;
  connection: { on(event: 'commandComplete', listener: (message: { text: string }) => void): void };
}

export interface JobRun {
  urlOf: UrlOf;
  /** The worker's own session, which writes down what becomes of the run. */
  recorder: pg.Client;
  job: Job;
  /** Ends the session when the worker stops. */
  stopping: AbortSignal;
  /** Ends the session when the job is removed or switched off. */
  removed: AbortSignal;
}

/** Runs the job's command as its user. Records a failing command; throws only when the worker stops meanwhile. */
export async function runJob({ urlOf, recorder, job, stopping, removed }: JobRun): Promise<void> {
  const begun = new Date();
  const { rows } = await recorder.query<{ runid: string }>(
    `insert into cron.job_run_details (jobid, database, username, command, status)
     values ($1, $2, $3, $4, 'starting') returning runid`,
    [job.jobid, job.database, job.username, job.command],
  );
  const runid = rows[0]?.runid;
  const login = rolesThatLogIn.includes(job.username) ? job.username : 'supabase_admin';
  const session = await connect(urlOf(login, job.database)).catch(() => null);
  if (!session) {
    await recorder.query(
      `update cron.job_run_details
          set status = 'failed', return_message = 'connection failed', start_time = $2, end_time = clock_timestamp()
        where runid = $1`,
      [runid, begun],
    );
    return;
  }
  const stop = () => void session.end().catch(() => {});
  stopping.addEventListener('abort', stop);
  removed.addEventListener('abort', stop);
  try {
    if (login !== job.username) {
      await session.query(`set session authorization ${pg.escapeIdentifier(job.username)}`);
    }
    await recorder.query(
      `update cron.job_run_details set status = 'running', job_pid = $2, start_time = clock_timestamp()
        where runid = $1`,
      [runid, (session as unknown as Internals).processID],
    );
    const [status, message] = await outcome(session, job.command, removed);
    await recorder.query(
      `update cron.job_run_details set status = $2, return_message = $3, end_time = clock_timestamp()
        where runid = $1`,
      [runid, status, message],
    );
  } finally {
    stopping.removeEventListener('abort', stop);
    await session.end().catch(() => {});
  }
}

async function outcome(
  session: pg.Client,
  command: string,
  removed: AbortSignal,
): Promise<['succeeded' | 'failed', string]> {
  let tag = '';
  (session as unknown as Internals).connection.on('commandComplete', ({ text }) => {
    tag = text;
  });
  try {
    const results = await session.query(command);
    const last: pg.QueryResult = Array.isArray(results) ? results.at(-1) : results;
    const isTable = last.fields.length > 0 || !tag || tag.startsWith('SELECT');
    return ['succeeded', isTable ? `${last.rows.length} row${last.rows.length === 1 ? '' : 's'}` : tag];
  } catch (error) {
    // The server goes on with the statement of a session that was ended here.
    return ['failed', removed.aborted ? 'job canceled' : errorText(error as pg.DatabaseError)];
  }
}

/** Returns an error as libpq tells it, but for the line of the command. */
function errorText({ message, detail, hint, where }: pg.DatabaseError): string {
  const parts = { ERROR: message, DETAIL: detail, HINT: hint, CONTEXT: where };
  return Object.entries(parts)
    .filter(([, text]) => text)
    .map(([name, text]) => `${name}:  ${text}\n`)
    .join('');
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'pg_cron', connectionTimeoutMillis });
  client.on('error', () => {});
  await client.connect();
  return client;
}
