// The rule that a hosted project's Data API holds all statements to, and whoever they call.
import { describe, expect, it } from 'vitest';
import { unsafeUpdates } from '../../tools/check/safe-updates.ts';

const faults = async (text: string) => (await unsafeUpdates(text)).map(({ line, fault }) => `${line}: ${fault}`);
const body = (statements: string) =>
  `create function a.f() returns int language plpgsql as $$\ndeclare v_n int;\nbegin\n  ${statements}\nend $$;`;

describe('a statement without a WHERE is found', () => {
  it.each([
    ['in a migration', 'update a.t set x = 1;', '1: no WHERE: update a.t set x = 1'],
    ['with a where of something else', 'delete from a.t using (select 1 where true) s;', 1],
    ['beside one that has one', 'delete from a.t where x = 1;\ndelete from a.t;', '2: no WHERE: delete from a.t'],
    ['in a with', 'with d as (\n delete from a.t returning x) select x from d where x > 1;', 2],
    ['in a function', body('update a.t as o set x = 1 returning x into v_n;'), 4],
    ['under a condition', body('if v_n > 1 then delete from a.t; end if;'), 4],
    ['in a text that is executed', body("execute format('update %I set x = %L', 't', 1);"), 4],
    ['in a text of two lines', body("execute 'update a.t '\n 'set x = 1';"), 4],
    ['in a text with a part put in', body("execute 'update ' || quote_ident(v_t) || ' set x = 1';"), 4],
    ['in a text after another statement', body("execute 'lock a.t; delete from a.t';"), 4],
    ['in a text with a comment first', body("execute '-- all\n delete from a.t';"), 5],
    ['of a table alone, by another name', body('update only a.t as o set x = 1;'), 4],
    ['in the body of SQL', 'create function a.f() returns void begin atomic delete from a.t; end;', 1],
    ['in a function that a function writes', body('execute $f$ delete from a.t; $f$;'), 4],
  ])('%s', async (_, text, expected) => {
    const found = await faults(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(typeof expected === 'number' ? new RegExp(`^${expected}: no WHERE`) : expected);
  });
});

it.each([
  ['a row lock', 'select 1 from a.t for update; select 1 from a.t for no key update skip locked;'],
  ['a conflict', 'insert into a.t values (1) on conflict do update set x = 1;'],
  ['a trigger', 'create trigger t after insert or update on a.t execute function a.f();'],
  ['a right', 'grant update on a.t to b; grant select, delete on a.t to b;'],
  ['a sentence', "comment on table a.t is 'Nobody may delete from it. -- update it set by set';"],
  ['a merge', 'merge into a.t using a.u on true when matched then update set x = 1 when not matched then do nothing;'],
  ['a cursor', 'delete from a.t where current of c;'],
  ['a comment', '-- delete from a.t;\n/* update a.t set x = 1; */ select 1;'],
  ['what is put in', body("execute format('update %s e set %s%s where e.%I = any ($1::%s[])', 1, 2, 3, 4, 5);")],
])('%s is none', async (_, text) => {
  expect(await faults(text)).toEqual([]);
});

it('a text that cannot be parsed is reported', async () => {
  expect(await faults('update a.t set x = where y = 1;')).toEqual([
    '1: Postgres cannot read this: update a.t set x = where y = 1',
  ]);
});
