import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { callGraph } from '../../cli/check/call-graph.ts';
import { checkEngineLayers } from '../../cli/check/engine-layers.ts';
import { hooksSql } from '../../cli/engine/engine-sql.ts';

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-layers-'));
  write('engine/modules.json', '["low", "high"]');
  for (const name of ['low', 'high']) fs.mkdirSync(path.join(root, 'engine/modules', name), { recursive: true });
  write('engine/hooks.sql', 'select 1;');
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
      `create view millrace.shown as select millrace.a(1) as a;`,
      `create function millrace.d() returns int language sql as 'select a from millrace.shown';`,
      ...['assigned', 'looped', 'built', 'not_called'].map((name) => fn(name, 'begin return 1; end')),
    ].join('\n'),
  );
  const graph = await callGraph(path.join(root, 'engine'));
  const calls = (name: string) => [...(graph.get(name)?.calls ?? [])].sort();
  expect(['a', 'b', 'c', 'd', 'shown'].map(calls)).toEqual([
    ['assigned'],
    ['a', 'looped'],
    ['built'],
    ['shown'],
    ['a'],
  ]);
});

test('the kernel calls hooks alone, and a module those before it', async () => {
  write('engine/kernel/a.sql', fn('a', 'begin return millrace.fine(1); end'));
  write('engine/hooks.sql', fn('fine', "begin\n  -- the modules' fine\nend"));
  write('engine/modules/low/b.sql', fn('low', "begin return 'Call millrace.high(1).' is null or millrace.a(1); end"));
  write('engine/modules/low/hooks.plpgsql', '-- on fine\nreturn millrace.low(p_id);\n');
  write('engine/modules/high/c.sql', fn('high', 'begin return millrace.low(1); end'));
  expect(await checkEngineLayers(root)).toBe('');
  write('engine/kernel/a.sql', fn('a', 'begin return millrace.low(1); end'));
  write('engine/modules/low/b.sql', fn('low', 'begin return millrace.high(1); end'));
  expect(await checkEngineLayers(root)).toBe(
    'kernel → low: low: a may call hooks and what lies below alone\n' +
      'low → high: high: low may call hooks and what lies below alone',
  );
});

test('a hook runs what each module has for it, in the order of the modules, and what has no place is named', async () => {
  write('engine/hooks.sql', fn('h', "begin\n  -- the modules' ended\n  return 1;\nend"));
  write('engine/modules/high/hooks.plpgsql', '-- on ended\nperform millrace.c();\n');
  write('engine/modules/low/hooks.plpgsql', '-- on ended\nperform millrace.a();\nperform millrace.b();\n');
  expect(hooksSql(path.join(root, 'engine'))).toContain(
    'begin\n  perform millrace.a();\n  perform millrace.b();\n  perform millrace.c();\n  return 1;\nend',
  );
  write('engine/modules/high/hooks.plpgsql', '-- on nothing\nperform millrace.c();\n');
  expect(() => hooksSql(path.join(root, 'engine'))).toThrow('engine/hooks.sql has no place for "nothing"');
});
