import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { projectFolder } from './run-command.ts';

it('seeds leads that nobody has started, also when it is applied twice', async () => {
  const seed = fs.readFileSync(path.join(projectFolder, 'supabase', 'seed.sql'), 'utf8');
  const database = await createTestDatabase();
  try {
    const client = await database.connect();
    await client.query(seed);
    await client.query(seed);
    const { rows } = await client.query('select distinct scrape_status from public.leads');
    expect(rows).toEqual([{ scrape_status: 'pending' }]);
    expect((await client.query('select from millrace.runs')).rowCount).toBe(0);
  } finally {
    await database.drop();
  }
});
