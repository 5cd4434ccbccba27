import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { callGraph } from '../../tools/check/call-graph.ts';
import { checkEngineLayers, engineBound, kernelBounds } from '../../tools/check/engine-layers.ts';
import { codeOf } from '../../tools/check/sql-code.ts';
import { codeStatements, hooksSql } from '../../tools/engine/engine-sql.ts';

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-layers-'));
  write('engine/modules.json', '["low", "high"]');
  for (const name of ['low', 'high']) write(`engine/modules/${name}/README.md`, `# ${name}\n`);
  write('engine/hooks.sql', '-- Hooks\n');
  write('engine/kernel/none.sql', '-- Nothing\n');
  fs.mkdirSync(path.join(root, 'engine/structure'));
});
afterEach(() => fs.rmSync(root, { recursive: true }));

function write(file: string, text: string): void {
  fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  fs.writeFileSync(path.join(root, file), text);
}

const fn = (name: string, body: string) =>
  `create function millrace.${name}(p_id int) returns int language plpgsql as $$\n${body}\n$$;\n`;

test('the call graph reads expressions, loops, views, plain SQL and SQL that is built as text', async () => {
  write(
    'engine/kernel/a.sql',
    [
      fn('a', 'declare\n  v_run millrace.runs;\nbegin v_run.id := millrace.assigned(1); return a.p_id; end'),
      fn(
        'b',
        `declare v record; begin for v in select x from millrace.looped(1) loop perform millrace.a(v.x); end loop; return 1; end`,
      ),
      fn('c', `begin execute format('select millrace.built(%s)', 1); return 'millrace.not_called' is null; end`),
      fn(
        'e',
        'declare\n  v_run millrace.runs := millrace.assigned(1);\n  v_at constant record := millrace.looped(2);\n' +
          'begin return v_run.id; end',
      ),
      `create view millrace.shown as select millrace.a(1) as a;`,
      `create function millrace.d() returns int language sql as 'select a from millrace.shown';`,
      ...['assigned', 'looped', 'built', 'not_called'].map((name) => fn(name, 'begin return 1; end')),
    ].join('\n'),
  );
  const graph = await callGraph(path.join(root, 'engine'));
  const calls = (name: string) => [...(graph.get(name)?.calls ?? [])].sort();
  expect(['a', 'b', 'c', 'd', 'e', 'shown'].map(calls)).toEqual([
    ['assigned'],
    ['a', 'looped'],
    ['built'],
    ['shown'],
    ['assigned', 'looped'],
    ['a'],
  ]);
});

test('the kernel calls hooks alone, and a module those before it', async () => {
  write('engine/kernel/a.sql', fn('a', 'begin return millrace.fine(1); end'));
  write('engine/hooks.sql', fn('fine', "begin\n  -- the modules' fine\nend"));
  write('engine/modules/low/b.sql', fn('low', "begin return 'Call millrace.high(1).' is null or millrace.a(1); end"));
  write('engine/modules/low/hooks.plpgsql', '-- on fine\nreturn millrace.low(p_id);\n');
  write('engine/modules/high/c.sql', fn('high', 'begin return millrace.low(1); end'));
  expect(await checkEngineLayers(root, true)).toBe('');
  write('engine/kernel/a.sql', fn('a', 'begin return millrace.low(1); end'));
  write('engine/modules/low/b.sql', fn('low', 'begin return millrace.high(1); end'));
  expect(await checkEngineLayers(root, true)).toBe(
    'kernel → low: low: a may call hooks and what lies below alone\n' +
      'low → high: high: low may call hooks and what lies below alone',
  );
});

test('the kernel names its own tables alone, and a module those of the kernel and of modules before it', async () => {
  for (const owner of ['kernel_queue', 'low', 'high'])
    write(`engine/structure/000${owner.length}_${owner}.sql`, `create table millrace.${owner}_rows (id int);\n`);
  write('engine/kernel/a.sql', fn('a', 'begin return (select id from millrace.kernel_queue_rows); end'));
  write(
    'engine/modules/low/b.sql',
    fn('low', 'begin insert into millrace.kernel_queue_rows values (1); return 1; end'),
  );
  write('engine/modules/high/c.sql', fn('high', 'begin delete from millrace.low_rows r where r.id = 1; return 1; end'));
  expect(await checkEngineLayers(root, true)).toBe('');
  write('engine/kernel/a.sql', fn('a', 'begin insert into millrace.low_rows values (1); return 1; end'));
  write('engine/modules/low/b.sql', fn('low', `begin execute 'update millrace.high_rows set id = 1'; return 1; end`));
  expect(await checkEngineLayers(root, true)).toBe(
    'table kernel → low: low_rows: a may name tables of their own and of what lies below alone\n' +
      'table low → high: high_rows: low may name tables of their own and of what lies below alone',
  );
});

test('the sizes of kernel, engine and ARCHITECTURE.md are bounded by code, and comments are free', async () => {
  for (const name of ['low', 'high'])
    write(`engine/modules/${name}/README.md`, `# ${name}\n\nStands on: the kernel alone.\n`);
  fs.rmSync(path.join(root, 'engine/kernel/none.sql'));
  const code = (bytes: number) => `select '${'x'.repeat(bytes - 11)}';\n`;
  const faults = () => checkEngineLayers(root, false);
  for (let file = 1; file < 20; file += 1) write(`engine/kernel/${file}.sql`, '-- Nothing\n');
  const { bytes: most } = kernelBounds;
  write('engine/kernel/20.sql', `-- ${'x'.repeat(300_000)}\n${code(most)}`);
  expect(await faults()).toBe('');
  write('engine/kernel/20.sql', code(most + 1));
  expect(await faults()).toContain(`kernel has 20 files and ${most + 1} bytes of code, at most 20 and ${most}: `);
  write('engine/kernel/20.sql', code(100_000));
  write('engine/kernel/21.sql', '-- Nothing\n');
  expect(await faults()).toContain(`kernel has 21 files and 100000 bytes of code, at most 20 and ${most}: `);
  fs.rmSync(path.join(root, 'engine/kernel/21.sql'));
  write('engine/modules/low/b.sql', code(engineBound - 110_000));
  write('engine/releases/1.sql', code(1000));
  write('engine/hooks.sql', fn('h', "begin\n  -- the modules' moment\n  return 1;\nend"));
  write('engine/modules/low/hooks.plpgsql', `-- on moment\nperform '${'x'.repeat(9890)}';\n`);
  write('ARCHITECTURE.md', 'x'.repeat(20_000));
  expect(await faults()).toBe('');
  write('engine/modules/low/hooks.plpgsql', `-- on moment\nperform '${'x'.repeat(9891)}';\n`);
  expect(await faults()).toContain(`engine has ${engineBound + 1} bytes of code, at most ${engineBound}: `);
  write('engine/modules/low/hooks.plpgsql', '-- None\n');
  write('ARCHITECTURE.md', 'x'.repeat(20_001));
  expect(await faults()).toBe('ARCHITECTURE.md has 20001 bytes, at most 20000');
});

test('the code of SQL lacks its comments, those in functions included, and keeps what strings hold', () => {
  const sql = [
    '-- Adds.',
    'create function a(b text) /* of',
    'b */ returns text as $$',
    'begin',
    '  -- a line',
    "  return 'it''s --no' || E'\\'--no' || \"--no\" || $t$--no$t$ || b; -- yes",
    'end',
    '$$;',
    '',
    'comment on function a(text) is $$--no$$;',
    '',
  ].join('\n');
  expect(codeOf(sql)).toBe(
    [
      'create function a(b text)  returns text as $$',
      'begin',
      "  return 'it''s --no' || E'\\'--no' || \"--no\" || $t$--no$t$ || b;",
      'end',
      '$$;',
      'comment on function a(text) is $$--no$$;',
      '',
    ].join('\n'),
  );
});

test('the README of a module ends with those that it stands on', async () => {
  write('engine/modules/low/b.sql', fn('low', 'begin return 1; end'));
  write('engine/modules/high/c.sql', fn('high', 'begin return millrace.low(1); end'));
  expect(await checkEngineLayers(root, false)).toBe(
    'engine/modules/low/README.md must end with "Stands on: the kernel alone." (--write)\n' +
      'engine/modules/high/README.md must end with "Stands on: low." (--write)',
  );
  expect(await checkEngineLayers(root, true)).toBe('');
  expect(fs.readFileSync(path.join(root, 'engine/modules/high/README.md'), 'utf8')).toBe('# high\n\nStands on: low.\n');
  write('engine/modules/high/c.sql', fn('high', 'begin return 1; end'));
  expect(await checkEngineLayers(root, false)).toContain('high/README.md must end with "Stands on: the kernel alone."');
});

test('a hook runs what each module has for it, in the order of the modules, and what has no place is named', async () => {
  write('engine/hooks.sql', fn('h', "begin\n  -- the modules' ended\n  return 1;\nend"));
  write('engine/modules/high/hooks.plpgsql', '-- on ended\nperform millrace.c();\n');
  write('engine/modules/low/hooks.plpgsql', '-- on ended\nperform millrace.a();\nperform millrace.b();\n');
  expect(hooksSql(path.join(root, 'engine'))).toContain(
    'begin\n  perform millrace.a();\n  perform millrace.b();\n  perform millrace.c();\n  return 1;\nend',
  );
  write(
    'engine/hooks.sql',
    "-- Ends.\ncreate function millrace.hook_ended(p_ids int[] default '{}', p_n int default abs(1));\n",
  );
  expect(hooksSql(path.join(root, 'engine'))).toMatch(
    /default abs\(1\)\)\nas \$\$\nperform millrace\.a\(\);\n[^$]*c\(\);\n\$\$;\n$/,
  );
  write('engine/modules/high/hooks.plpgsql', '-- on nothing\nperform millrace.c();\n');
  expect(() => hooksSql(path.join(root, 'engine'))).toThrow('engine/hooks.sql has no place for "nothing"');
});

test('the build says the language of a body, puts statements into a block, and declares the moment of a call', async () => {
  write(
    'engine/kernel/a.sql',
    [
      '-- Adds.\ncreate function millrace.a() returns int\nstable\nas $$\n-- One\nselect 1\n$$;',
      '-- Adds.\ncreate function millrace.b() returns int\nas $$\nbegin\n  return v_now;\nend\n$$;',
      '-- Adds.\ncreate function millrace.c() returns int\nas $$\ndeclare\n  v_a int := v_now;\nbegin\n  return 1;\nend\n$$;',
      '-- Adds.\ncreate function millrace.d() returns int\nas $$\ndeclare\n  v_now timestamptz;\nbegin\n  return v_now;\nend\n$$;',
      "-- Adds.\ncreate function millrace.e() returns text\nas $w$\nbegin\n  -- v_now\n  return $f$v_now$f$ || 'v_now';\nend\n$w$;\n",
      '-- Adds.\ncreate function millrace.f()\nas $$\n-- One\nupdate a set b = v_now where c;\n$$;',
    ].join('\n'),
  );
  const texts = (await codeStatements(path.join(root, 'engine'))).map(({ text }) => text);
  expect(texts.map((text) => /language (\w+)/.exec(text)?.[1])).toEqual(['sql', ...Array(5).fill('plpgsql')]);
  expect(texts[0]).toContain('as $$\n  -- One\n  select 1\n$$');
  const now = 'declare\n  v_now timestamptz := millrace.now();\n';
  expect(texts[1]).toContain(`${now}begin\n  return v_now;`);
  expect(texts[2]).toContain(`${now}  v_a int := v_now;\nbegin`);
  expect(texts[5]).toContain(`${now}begin\n  -- One\n  update a set b = v_now where c;\nend\n$$`);
  for (const text of [texts[3], texts[4]]) expect(text).not.toContain(now);
});

/** The settings by which a function looks up by keys, as each for Edge Functions does. */
const byKey =
  'set enable_bitmapscan = off set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off ' +
  'set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan';

test('a function is in plpgsql and returns nothing unless it says so; one for Edge Functions returns jsonb and asks for their release', async () => {
  const body = 'as $$\ndeclare\n  v_a int;\nbegin\n  perform p_id;\nend\n$$';
  write(
    'engine/kernel/a.sql',
    `-- Adds.\ncreate function public.millrace_a(p_id int default abs(1), p_b int default 1)\n${body};\n`,
  );
  write('engine/kernel/b.sql', `-- Adds.\ncreate function millrace.b(out b int)\nstable\n${body};\n`);
  write('engine/kernel/c.sql', `-- Adds.\ncreate function millrace.c() returns trigger\n${body};\n`);
  write('engine/kernel/d.sql', '-- Views.\ncreate view millrace.d as\nselect v_now as at;\n');
  const [open, closed, fired, view] = await codeStatements(path.join(root, 'engine'));
  expect(view?.text).toContain('select (select millrace.now()) as at');
  expect(fired?.text).toContain('returns trigger\nsecurity definer\nlanguage plpgsql\n');
  expect(open?.text).toBe(
    '-- Adds.\ncreate or replace function public.millrace_a(p_id int default abs(1), p_b int default 1) returns jsonb\n' +
      `security definer\n${byKey}\nlanguage plpgsql\nset search_path = pg_catalog, pg_temp\nas $$\ndeclare\n  v_a int;\nbegin\n` +
      '  if millrace.refuse_contract() is not null then\n    return millrace.refuse_contract();\n  end if;\n' +
      '  perform p_id;\nend\n$$',
  );
  expect(closed?.text).toMatch(
    /b\(out b int\)\nstable\nlanguage plpgsql\nset search_path.*\nas \$\$\ndeclare\n {2}v_a int;\nbegin\n {2}perform/,
  );
});

test('the build writes what follows from rules into a header, and lets Edge Functions alone call it', async () => {
  const header = 'create function public.millrace_a(p_id int) returns int\nlanguage sql\nset plan = by_key\nas $$';
  write('engine/kernel/a.sql', `-- Adds.\n${header} select 1 $$;\n`);
  const [made, ...rights] = await codeStatements(path.join(root, 'engine'));
  expect(made?.text).toBe(
    `-- Adds.\ncreate or replace ${header.replace('create ', '')} select 1 $$`.replace(
      'set plan = by_key',
      `${byKey}\nsecurity definer\nset search_path = pg_catalog, pg_temp`,
    ),
  );
  expect(rights.map(({ text }) => text)).toEqual([
    'revoke all on function public.millrace_a(int4) from public, anon, authenticated, service_role',
    'grant execute on function public.millrace_a(int4) to service_role',
    "comment on function public.millrace_a(int4) is 'Adds.'",
  ]);
  write('engine/kernel/b.sql', 'grant execute on function public.millrace_a(int) to authenticated;\n');
  const granted = await codeStatements(path.join(root, 'engine'));
  expect(granted.slice(1).map(({ node }) => node.grantees?.length)).toEqual([undefined, 1]);
  write('engine/kernel/a.sql', `-- Adds.\n${header.replace('by_key', 'by_chance')} select 1 $$;\n`);
  await expect(codeStatements(path.join(root, 'engine'))).rejects.toThrow(
    'engine/kernel/a.sql: there is no plan by_chance; the build has by_index, by_key, in_order, anew, for_lists, for_runs, free.',
  );
});
