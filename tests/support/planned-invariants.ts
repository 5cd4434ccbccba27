// millrace.check_invariants() as a statement that a session plans once. Postgres plans a function in SQL anew at each call, which
// takes most of the time where the tables are small, and it is called after every test.
import { createHash } from 'node:crypto';
import type pg from 'pg';

/** Beyond these many attempts a plan made for fewer would cost more than it spares. */
const fewAttempts = 500;

/** The breaches that millrace.check_invariants() finds, by what it says now. */
export async function invariantBreaches(client: pg.Client): Promise<unknown[]> {
  const { rows } = await client.query<{ body: string }>({
    name: 'invariants-body',
    text: `select p.prosrc as body from pg_proc p where p.oid = to_regprocedure('millrace.check_invariants()')
      and (select count(*) from (select from millrace.attempts limit $1 + 1) a) <= $1`,
    values: [fewAttempts],
  });
  const [{ body } = { body: undefined }] = rows;
  if (body === undefined) {
    // With statistics of a time when the tables were empty, each run is compared with each attempt.
    await client.query('analyze millrace.runs, millrace.attempts');
    return (await client.query('select * from millrace.check_invariants()')).rows;
  }
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 16);
  return (await client.query({ name: `invariants-${digest}`, text: body })).rows;
}
