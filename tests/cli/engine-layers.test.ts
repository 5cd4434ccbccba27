import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { callGraph } from '../../cli/check/call-graph.ts';
import { checkEngineLayers } from '../../cli/check/engine-layers.ts';

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-layers-'));
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
    'engine/code/core/a.sql',
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

test('the core may call of the features what the list has, and the list only shrinks', async () => {
  write('engine/code/core/a.sql', fn('a', 'begin return millrace.old(1); end'));
  write(
    'engine/code/features/b.sql',
    fn('old', 'begin return 1; end') + fn('fresh', 'begin return millrace.a(1); end'),
  );
  write('cli/check/core-calls.txt', 'old\n');
  expect(await checkEngineLayers(root, false)).toBe('');
  write('engine/code/core/a.sql', fn('a', 'begin return millrace.fresh(1); end'));
  expect(await checkEngineLayers(root, false)).toBe(
    'a calls fresh of code/features/b.sql\nold is on the list, but the core does not call it',
  );
  expect(await checkEngineLayers(root, true)).toBe('a calls fresh of code/features/b.sql');
  expect(fs.readFileSync(path.join(root, 'cli/check/core-calls.txt'), 'utf8').trim()).toBe('');
});
