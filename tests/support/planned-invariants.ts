// millrace.check_invariants() as a statement that a session plans once. Postgres plans a function in SQL anew at each call, which
// takes most of the time where the tables are small, and it is called after every test.
import { createHash } from 'node:crypto';
import type pg from 'pg';

/** Beyond these many bytes of attempts a plan made for fewer would cost more than it spares. */
const fewAttempts = 100_000;

interface Routine {
  name: string;
  body: string;
}

const whole = 'select * from millrace.check_invariants()';

/** The breaches that millrace.check_invariants() finds, by what it and the functions that it calls say now. */
export async function invariantBreaches(client: pg.Client): Promise<unknown[]> {
  const { rows: routines } = await client.query<Routine>({
    name: 'invariant-routines',
    text: `select p.proname as name, p.prosrc as body
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
      where n.nspname = 'millrace' and l.lanname = 'sql' and p.pronargs = 0
        and (p.proname = 'check_invariants' or p.proname like '%\\_faults')
        and pg_relation_size('millrace.attempts') <= $1`,
    values: [fewAttempts],
  });
  return (await client.query(statementOf(routines))).rows;
}

/** With the bodies of the functions in the place of their calls, under a name of its own. */
function statementOf(routines: Routine[]): string | { name: string; text: string } {
  const main = routines.find(({ name }) => name === 'check_invariants');
  if (!main) return whole;
  const text = routines.reduce(
    (said, { name, body }) =>
      said.replace(`millrace.${name}() f`, () => `(${body}) f (rule, run_id, attempt_id, detail)`),
    main.body,
  );
  return { name: `invariants-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`, text };
}
