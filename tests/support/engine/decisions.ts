// The helpers that tests of manual stages share: a pipeline in which a person reviews a draft, and the call by which they decide.
import type pg from 'pg';
import type { Engine, Row } from '../engine.ts';
import { runStage } from '../worker.ts';

export const accept = { verdict: 'accept' };
export const reject = { verdict: 'reject', note: 'too long' };

const schema = {
  type: 'object',
  properties: { verdict: { enum: ['accept', 'reject'] }, note: { type: 'string', maxLength: 200 } },
  required: ['verdict'],
  additionalProperties: false,
};

/** Defines draft → review (a person decides) → publish, and brings `count` new items to their review; returns their ids. */
export async function toReview(
  engine: Engine,
  count = 1,
  options: Row = {},
  projection = 'columns',
): Promise<string[]> {
  const review = { name: 'review', kind: 'manual', needs: ['draft'], decision: { schema, deadline_seconds: 3600 } };
  await engine.pipeline([{ name: 'draft' }, { ...review, ...options }, { name: 'publish', needs: ['review'] }], {
    projection,
  });
  const ids = await engine.insert(count);
  for (const id of ids) await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  await runStage(engine, 'draft');
  return ids;
}

/** The newest attempt that asked about an item. */
export async function asked(engine: Engine, id: string | undefined): Promise<string> {
  const statement = 'select max(attempt_id) from public.millrace_decisions where entity_id = $1';
  return engine.value<string>(statement, [id]);
}

/** Decides as the session's user; resolves to the verdict. */
export async function decide(client: pg.Client, attempt: string, decision: unknown = accept): Promise<string> {
  const { rows } = await client.query('select public.millrace_decide($1, $2) as answer', [
    attempt,
    JSON.stringify(decision),
  ]);
  return rows[0].answer.verdict;
}
