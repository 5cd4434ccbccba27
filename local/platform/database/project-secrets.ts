import pg from 'pg';

/**
 * USE_NEW_PIPELINE of these settings, undefined when it is not set. Throws an error that names it unless it is true or false.
 */
export function readUseNewPipeline(settings: Record<string, string>): string | undefined {
  const value = settings.USE_NEW_PIPELINE;
  if (value === undefined || value === 'true' || value === 'false') return value;
  throw new Error(
    `USE_NEW_PIPELINE is ${JSON.stringify(value)}, but must be true or false: correct it, or leave it out.`,
  );
}

/**
 * Tells the database, through Vault, where the project's functions are and which secret wakes them. With `useNewPipeline` it
 * also sets which way documents go; without it that stays as it is.
 */
export async function setProjectSecrets(
  superUrl: string,
  projectUrl: string,
  wakeSecret: string,
  useNewPipeline?: string,
): Promise<void> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  try {
    const secrets = {
      millrace_project_url: projectUrl,
      millrace_wake_secret: wakeSecret,
      millrace_use_new_pipeline: useNewPipeline,
    };
    for (const [name, secret] of Object.entries(secrets)) {
      if (secret === undefined) continue;
      const { rows } = await client.query<{ id: string }>('select id from vault.secrets where name = $1', [name]);
      if (rows[0]) await client.query('select vault.update_secret($1, $2)', [rows[0].id, secret]);
      else await client.query('select vault.create_secret($1, $2)', [secret, name]);
    }
  } finally {
    await client.end();
  }
}
