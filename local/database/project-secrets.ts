import pg from 'pg';

/** Tells the database, through Vault, where the project's functions are and which key opens them. */
export async function setProjectSecrets(superUrl: string, projectUrl: string, secretKey: string): Promise<void> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  try {
    const secrets = { pipeline_project_url: projectUrl, pipeline_secret_key: secretKey };
    for (const [name, secret] of Object.entries(secrets)) {
      const { rows } = await client.query<{ id: string }>('select id from vault.secrets where name = $1', [name]);
      if (rows[0]) await client.query('select vault.update_secret($1, $2)', [rows[0].id, secret]);
      else await client.query('select vault.create_secret($1, $2)', [secret, name]);
    }
  } finally {
    await client.end();
  }
}
