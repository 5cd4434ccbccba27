// How many functions of the engine a reader passes who follows one row through one stage. The bounds may only shrink.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Way, wayThrough } from '../support/engine/hops.ts';
import { chain, Engine } from '../support/engine.ts';
import { samples } from '../support/examples/leads-samples.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Compares the parts one by one; a smaller number is to be written here, a larger one asks for a reason. */
function expectAtMost({ intake, claim, complete }: Way, most: { intake: number; claim: number; complete: number }) {
  expect.soft(intake.length, `intake: ${intake}`).toBeLessThanOrEqual(most.intake);
  expect.soft(claim.length, `claim: ${claim}`).toBeLessThanOrEqual(most.claim);
  expect.soft(complete.length, `complete: ${complete}`).toBeLessThanOrEqual(most.complete);
}

test('a row of a plain chain passes few functions in a stage', async () => {
  await new Engine(database, await database.connect()).pipeline(chain(['one', 'two']));
  const way = await wayThrough(database, { pipeline: 'flow', stage: 'one', result: { done: true } }, (sql) =>
    sql.query(`insert into public.items (one_status) values ('queued')`),
  );
  // Each part looks whether anybody watches rows, and the report's list is checked by a function that four calls share.
  expectAtMost(way, { intake: 16, claim: 22, complete: 25 });
});

test('a lead passes few functions in a stage, with its turns and its quota', async () => {
  const way = await wayThrough(database, { pipeline: 'leads', stage: 'scrape', result: samples.scrape }, (sql) =>
    sql.query(
      `insert into public.leads (email, company_url, account_id, scrape_status)
       values ('a@b.test', 'https://a.test', gen_random_uuid(), 'queued')`,
    ),
  );
  expectAtMost(way, { intake: 29, claim: 40, complete: 46 });
});
