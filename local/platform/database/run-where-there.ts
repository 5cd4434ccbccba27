import pg from 'pg';

/** Runs a statement as the superuser at `superUrl` where `table` is there: not every project has all that a stack knows of. */
export async function runWhereThere(superUrl: string, table: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  try {
    const { rows } = await client.query('select to_regclass($1) is not null as there', [table]);
    if (rows[0].there) await client.query(statement);
  } finally {
    await client.end();
  }
}
