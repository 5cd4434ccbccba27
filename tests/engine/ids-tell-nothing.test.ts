// Ids that a tenant guesses: what is somebody else's is answered as what nobody has.
import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import { accept, asked, toReview } from '../support/engine/decisions.ts';
import { type Engine, projectTest as test } from '../support/engine.ts';

const [red, blue] = [randomUUID(), randomUUID()];
const signedIn = (engine: Engine) =>
  engine.database.connect('authenticated', { sub: randomUUID(), app_metadata: { account_id: red } });

describe('a row of another account', () => {
  const tables = {
    leads: `insert into public.leads (email, company_url, account_id) values ('a@b.test', 'http://b.test', $1) returning id`,
    books: `insert into public.books (account_id, title, source_path) values ($1::uuid, 'a book', $1 || '/a.pdf') returning id`,
  };

  test.for(Object.entries(tables))(
    'of %s is answered as an id that nobody has',
    async ([table, insert], { engine }) => {
      const theirs = await engine.value<string>(insert, [blue]);
      const user = await signedIn(engine);
      const first = table === 'leads' ? 'scrape' : 'split';
      for (const statement of [
        `select * from public.${table} where id = $1`,
        `update public.${table} set ${first}_status = 'queued' where id = $1 returning id`,
        `delete from public.${table} where id = $1 returning id`,
      ]) {
        const [found, missing] = [await user.query(statement, [theirs]), await user.query(statement, [randomUUID()])];
        expect(found.rows).toEqual(missing.rows);
        expect(found.rows).toEqual([]);
      }
      expect(await engine.rows(`select id from public.${table}`)).toEqual([{ id: theirs }]);
    },
  );
});

test('a question to somebody else is answered as one that was never asked', async ({ engine }) => {
  const [item] = await toReview(engine);
  const theirs = await asked(engine, item);
  const user = await signedIn(engine);
  const answer = async (attempt: string) => {
    const statement = 'select public.millrace_decide($1, $2)';
    const { code, message } = await engine.refusal(statement, [attempt, JSON.stringify(accept)], user);
    return { code, message: message.replace(attempt, 'n') };
  };
  expect(await answer(theirs)).toEqual(await answer('987654321'));
  expect(await answer(theirs)).toMatchObject({ code: 'MR003' });
});
