import pg from 'pg';

/**
 * Has the real pg_cron reach the server at `superUrl`: it runs each job at the port at which that was scheduled, and a cluster is
 * copied, and started again, at others.
 */
export async function followPort(superUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  try {
    const { rows } = await client.query(`select to_regclass('cron.job') is not null as there`);
    if (rows[0].there) await client.query('update cron.job set nodeport = inet_server_port() where true');
  } finally {
    await client.end();
  }
}
