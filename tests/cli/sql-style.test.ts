import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkSqlStyle } from '../../tools/check/sql-style.ts';

/** The findings of the check in a project with these files. */
async function checked(files: Record<string, string>): Promise<string> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sql-style-'));
  onTestFinished(() => fs.rmSync(root, { recursive: true }));
  for (const [file, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), text);
  }
  return checkSqlStyle(root);
}

const file = 'engine/kernel/new.sql';
const of = (text: string) => checked({ [file]: text });

/** A function that keeps to every rule, but for what is given otherwise. */
function functionOf({
  comment = '-- Adds the children up.\n',
  name = 'millrace.cancel',
  parameters = 'p_id int, out sum int',
  volatility = 'stable',
  path = '',
  body = 'select 1',
} = {}): string {
  return `${comment}create function ${name}(${parameters})\n${volatility}${path}\nas $$\n${body}\n$$;\n`;
}

test('SQL that keeps to the style passes', async () => {
  const allowed = [
    functionOf(),
    functionOf({ comment: '', name: 'public.millrace_wake' }),
    functionOf({ parameters: 'out found record' }),
    functionOf({ body: `select format('%I, SELECT FROM', 'x'), $q$select %1$I$q$; -- A NOTE` }),
    functionOf()
      .replace('stable', 'returns millrace.a\nstable')
      .replace('select 1', 'select row(1, 2, 3, 4, 5, 6)::millrace.a'),
    functionOf({ body: 'select from a where a.at <= (select millrace.cancel()) and a.id = millrace.cancel(a.at);' }),
    functionOf({ body: Array(95).fill('select 1').join('\n') }),
    functionOf({ body: '  v_a int := 1;\n\nsum := v_a;' }),
    `comment on function millrace.cancel(int) is 'Cancels.';\n`,
    `comment on table millrace.runs is 'Runs.';\n`,
    'create table millrace.runs (id bigint);\ncreate index by_id on millrace.runs (id);\n',
    `-- ${'é'.repeat(97)}\n`,
  ];
  expect(await of(allowed.join('\n'))).toBe('');
});

test.each([
  ['a line is too wide', `-- ${'é'.repeat(98)}\n`, '1: 101 columns, at most 100'],
  [
    'a column is compared with a call that is made for each row',
    `${functionOf({ name: 'millrace.when', volatility: 'volatile' })}${functionOf({ body: 'select from a where a.at <= millrace.when();' })}`,
    '11: a column is compared with millrace.when(), called for each row: (select millrace.when())',
  ],
  [
    'an aggregate copies objects',
    functionOf({ body: "  execute 'select jsonb_object_agg(a, b)';" }),
    '5: jsonb_object_agg takes quadratic time in the keys of an object: json_object_agg(…)::jsonb',
  ],
  ['a keyword is in upper case', functionOf({ body: 'SELECT 1;' }), '5: SELECT is not in lower case'],
  [
    'several clauses stand on a long line',
    functionOf({ body: `select ${'r.id, '.repeat(14)}r.id from millrace.runs r where r.id = 1;` }),
    '5: from and where on one line of more than 90 columns',
  ],
  [
    'a function is too long',
    functionOf({ body: Array(97).fill('select 1').join('\n') }),
    '2: millrace.cancel has 101 lines, at most 100',
  ],
  [
    'a function is long and branches within a branch',
    functionOf({
      body: `${Array(50).fill('select 1').join('\n')}
  if true then
    if true then
      select 1
    end if;
    return;
  end if;
  return;`,
    }),
    '2: millrace.cancel has 61 lines, at most 60',
  ],
  [
    'a function is long and has many branches beside one another',
    functionOf({
      body: `${Array(39).fill('select 1').join('\n')}\n${Array(9).fill('  if true then\n    return;\n  end if;').join('\n')}`,
    }),
    '2: millrace.cancel has more than 60 lines and 9 branches, at most 8',
  ],
  [
    'a function has no comment',
    functionOf({ comment: '-- A chapter.\n\n', name: 'millrace.add_up' }) + twoCalls(),
    '3: millrace.add_up has no comment directly before it',
  ],
  [
    'a function sets a search path itself',
    functionOf({ path: ' set search_path = pg_catalog, pg_temp' }),
    '2: millrace.cancel sets search_path, which the build does',
  ],
  [
    'a function says that it may replace another',
    functionOf().replace('create ', 'create or replace '),
    '2: millrace.cancel says "or replace", which the build does',
  ],
  [
    'a function says its language',
    functionOf().replace('stable', 'language sql'),
    '2: millrace.cancel says its language, which the build does',
  ],
  [
    'a function indents a body that declares nothing',
    functionOf({ body: '  sum := 1;' }),
    '2: millrace.cancel indents a body that declares nothing, which the build does',
  ],
  [
    'a function says what bounds its statements',
    functionOf({ body: 'begin\n  sum := 1;\nend' }),
    '2: millrace.cancel says begin and end, which the build does',
  ],
  [
    'a function says the word before its declarations',
    functionOf({ body: 'declare\n  v_a int := 1;\n\nsum := v_a;' }),
    '2: millrace.cancel says declare, which the build does',
  ],
  [
    'a function says what the build does after declarations',
    functionOf({ body: 'declare\n  v_a int := 1;\nbegin\n  sum := v_a;\nend' }),
    '2: millrace.cancel says begin and end, which the build does',
  ],
  [
    'the function of a trigger says that it has the rights of its owner',
    functionOf({ parameters: '', volatility: 'security definer' }).replace('()', '() returns trigger'),
    '2: millrace.cancel says its rights, which the build does',
  ],
  [
    'a function declares the moment of its call',
    functionOf({
      body: 'declare\n  v_now timestamptz := millrace.now();\nbegin\n  sum := extract(year from v_now);\nend',
    }),
    '2: millrace.cancel declares v_now, which the build does',
  ],
  [
    'a function says that it returns nothing',
    functionOf({ parameters: 'p_id int' }).replace('stable', 'returns void\nstable'),
    '2: millrace.cancel returns void, which the build says',
  ],
  [
    'a parameter has no known fields',
    functionOf({ parameters: 'p_id int, p_row record' }),
    '2: the parameter p_row of millrace.cancel is of type record: name its fields',
  ],
  [
    'a comment is stored about what people do not call',
    `comment on function millrace.add_up(int) is 'Adds up.';\n`,
    '1: millrace.add_up is not called by people: say it in the comment before the function',
  ],
  ['a table has no schema', 'create table runs (id bigint);\n', '1: what it makes has no schema before its name'],
  ['a view has no schema', 'create view live as select 1 as one;\n', '1: what it makes has no schema before its name'],
  ['a function has no schema', functionOf({ name: 'add_up' }), '2: what it makes has no schema before its name'],
  [
    'a row is filled by position',
    functionOf({ body: "  select row(1, max(2, 3), array[4, 5], 'a, b', 6)::millrace.a, row(1,\n    2, 3, 4, 5, 6);" }),
    '5: 6 fields by position, at most 5: name them in a constructor',
  ],
  ['nothing calls a function', functionOf({ name: 'millrace.add_up' }), '2: nothing calls millrace.add_up'],
  [
    'a short helper has one caller',
    `${functionOf({ name: 'millrace.add_up' })}\n${functionOf({ body: 'select millrace.add_up(1);' })}`,
    '2: millrace.add_up has 1 lines and one caller: write them there',
  ],
])('it is refused that %s', async (_, text, fault) => {
  expect((await of(text)).split('\n')).toContain(`${file}:${fault}`);
});

/** A caller that needs a helper twice. */
function twoCalls(): string {
  return functionOf({ body: 'select millrace.add_up(1) + millrace.add_up(2);' });
}

test('a short helper stays where something beside its caller needs it by name', async () => {
  const helper = functionOf({ name: 'millrace.add_up' });
  const caller = functionOf({ body: 'select millrace.add_up(1);' });
  expect(await of(helper + twoCalls())).toBe('');
  expect(await checked({ [file]: helper + caller, 'tests/engine/sums.test.ts': "'select millrace.add_up(1)'" })).toBe(
    '',
  );
  expect(await checked({ [file]: caller, 'engine/modules/sums/sums.sql': helper })).toBe('');
  expect(await of(helper.replace('stable', 'security definer') + caller)).toBe('');
  expect(await of(helper.replace('select 1', Array(10).fill('select 1').join('\n')) + caller)).toBe('');
});

test('migrations of examples keep to the style, but for generated ones and the three before it', async () => {
  const wide = `-- ${'e'.repeat(98)}\n`;
  const add = functionOf({ name: 'public.add_up', path: '' });
  const said = await checked({
    'supabase/migrations/20261101002000_leads.sql': wide,
    'supabase/migrations/20261101000000_millrace.sql': wide,
    'supabase/migrations/20261102000001_pipeline_articles.sql': wide,
    'supabase/migrations/20261101005000_articles.sql': `${wide + add}comment on function public.add_up(int) is 'Adds.';\n`,
  });
  expect(said.split('\n')).toEqual([
    'supabase/migrations/20261101005000_articles.sql:1: 101 columns, at most 100',
    'supabase/migrations/20261101005000_articles.sql:3: public.add_up does not set search_path = pg_catalog, pg_temp',
  ]);
});
