import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { until } from '../support/until.ts';
import { type HttpTarget, startHttpTarget } from './http-target.ts';

let stack: Stack;
let web: HttpTarget;
/** The lines of pg_cron's stand-in. */
const told: string[] = [];

beforeAll(async () => {
  web = await startHttpTarget();
  stack = await startStack({
    services: false,
    migrations: path.join(import.meta.dirname, 'migrations'),
    functionsDir: path.join(import.meta.dirname, 'functions'),
    log: (source, line) => void (source === 'pg_cron' && told.push(line)),
  });
});
afterAll(async () => {
  await stack.stop();
  await web.stop();
});

async function query(text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: stack.dbUrl });
  client.on('error', () => {});
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

describe('after kill -9 of Postgres and a new start', () => {
  it('committed rows are there, and Data API, pg_net and pg_cron work again by themselves', async () => {
    await query(`insert into public.notes (text) values ('committed')`);
    await query(`select cron.schedule('beat', '1 second', $$insert into public.notes (text) values ('beat')$$)`);
    await stack.postgres.kill9();
    await expect(query('select 1')).rejects.toThrow();
    await stack.postgres.start();

    const { rows } = await query(`select count(*) from public.notes where text = 'committed'`);
    expect(rows).toEqual([{ count: '1' }]);
    await query('select net.http_get($1)', [`${web.url}/after`]);
    await until(() => web.received.some(({ url }) => url === '/after'));
    await query('delete from public.notes');
    await until(async () => (await query(`select from public.notes where text = 'beat'`)).rowCount).catch(async () => {
      const runs = await query('select * from cron.job_run_details order by runid desc limit 5');
      throw new Error(`the job does not run: ${[...runs.rows.map((row) => JSON.stringify(row)), ...told].join('\n')}`);
    });
    await until(async () => {
      const headers = { apikey: stack.secretKey };
      return (await fetch(`${stack.apiUrl}/rest/v1/notes?limit=1`, { headers })).status === 200;
    }, 15_000);
  });

  it('keeps its port, so that every URL stays good', async () => {
    const before = stack.postgres.port;
    await stack.postgres.stop();
    await stack.postgres.start();
    expect(stack.postgres.port).toBe(before);
  });
});
