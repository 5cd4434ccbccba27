// Pipelines and stages that `millrace add` writes, into whatever is there.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { fetchPackages } from '../../local/platform/functions/fetch-packages.ts';
import { PackedProject, tables, write } from '../support/packed-project.ts';

const packed = new PackedProject();
const { here, filesOf, folderWith } = packed;

test('an example comes as the user’s own code, by itself, and leaves alone what is there', async () => {
  const place = folderWith({ 'supabase/config.json': '{}', 'supabase/functions/_pipelines/leads.ts': '// Mine.\n' });
  const at = ['--workdir', place];
  const before = filesOf(place);
  expect(await here('init', '--example', 'lead', ...at)).toMatchObject({
    status: 2,
    stderr: 'There is no example lead: choose one of leads, documents, links, articles, books.\n',
  });
  expect(await here('init', '--example', 'leads', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('supabase/functions/_pipelines/leads.ts is there and says something else'),
  });
  expect(filesOf(place)).toEqual(before);
  fs.rmSync(path.join(place, 'supabase', 'functions'), { recursive: true });
  expect(await here('init', '--example', 'leads', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(await here('sync', ...at)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('_pipeline_leads.sql'),
  });
  // As `millrace dev` does: `check` weighs functions by what Deno has fetched, and fetches nothing itself.
  expect(await fetchPackages(path.join(place, 'supabase', 'functions'))).toEqual([]);
  expect(await here('check', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(Object.keys(filesOf(place)).filter((name) => /documents|books|links|articles/.test(name))).toEqual([]);
});

test('add names a column that is there and a definition that is none of ours, and writes nothing', async () => {
  const own = 'alter table "public"."tickets" add column "reply_result" text;\n';
  const place = folderWith({
    'supabase/config.json': '{}',
    'supabase/migrations/20260101000000_t.sql': tables + own,
    'supabase/functions/_pipelines/calls.ts': 'export const calls = 1;\n',
  });
  const at = ['--workdir', place];
  expect((await here('init', ...at)).status).toBe(0);
  const before = filesOf(place);
  expect(await here('add', 'tickets', 'triage', 'reply', ...at)).toMatchObject({
    status: 1,
    stderr:
      'public.tickets has a column reply_result already, which stage reply would have: give the stage another name.\n',
  });
  expect(await here('add', 'calls', 'transcribe', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('supabase/functions/_pipelines/calls.ts is there and exports no pipeline calls'),
  });
  expect(filesOf(place)).toEqual(before);
  expect((await here('add', 'tickets', 'triage', ...at)).status).toBe(0);
  write(place, 'supabase/config.json', '{ "functions": { "millrace": { "verify_jwt": false } } }');
  expect((await here('check', ...at)).stderr).toContain(
    'supabase/config.json must say, in "functions": "tickets-triage": { "verify_jwt": false,',
  );
});

test.each([
  ['indented by tabs and quoted', "\t\t'triage': { kind: 'function', function: 'tickets-triage' }\n\t"],
  ['spread over lines', "triage: {\n kind: 'function',\n function: 'tickets-triage',\n needs: [] }, "],
])('add finds the stages of a definition that is %s', async (_, stages) => {
  const other = `export const calls = definePipeline({
    name: 'calls', entity: { table: 'public.calls', key: 'id', projection: 'columns' },
    stages: { hear: { kind: 'function', function: 'calls-hear' } },
  });`;
  const [place, at] = await projectWith(`${other}\n${ticketsWith(stages)}`);
  expect(await here('add', 'tickets', 'reply', 'close', ...at)).toMatchObject({ status: 0, stderr: '' });
  const text = fs.readFileSync(path.join(place, definition), 'utf8');
  expect(text).toContain("reply: { kind: 'function', function: 'tickets-reply', needs: ['triage'] },\n");
  expect(text).toContain("close: { kind: 'function', function: 'tickets-close', needs: ['reply'] },\n");
  const handler = fs.readFileSync(path.join(place, 'supabase/functions/tickets-reply/handler.ts'), 'utf8');
  expect(handler).toContain("import { ours } from '../_pipelines/mine.ts';");
  expect(await here('sync', ...at)).toMatchObject({ status: 1, stderr: expect.stringContaining('tickets-triage') });
});

test.each([
  ['a comment after its last stage', "triage: { kind: 'function', function: 'tickets-triage' } // the last\n"],
  ['a bracket in a comment', "triage: { kind: 'function', function: 'tickets-triage' }, // :}\n"],
])('add says what to write into a definition with %s, and then adds the functions', async (_, stages) => {
  const [place, at] = await projectWith(ticketsWith(stages));
  const before = filesOf(place);
  const line = "    reply: { kind: 'function', function: 'tickets-reply', needs: ['triage'] },";
  expect(await here('add', 'tickets', 'reply', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(`put these lines at the end of its stages, then run this again`),
  });
  expect((await here('add', 'tickets', 'reply', ...at)).stderr).toContain(line);
  expect(filesOf(place)).toEqual(before);
  write(place, definition, ticketsWith(`triage: { kind: 'function', function: 'tickets-triage' },\n${line}`));
  expect(await here('add', 'tickets', 'reply', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect((await here('add', 'tickets', 'triage', ...at)).status).toBe(0);
  expect(await here('sync', ...at)).toMatchObject({ status: 0, stderr: '' });
  const merged = `<<<<<<< ours\n${ticketsWith('')}=======\n>>>>>>> theirs\n`;
  write(place, definition, merged);
  expect(await here('add', 'tickets', 'close', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('supabase/functions/_pipelines/mine.ts:1: '),
  });
  expect(fs.readFileSync(path.join(place, definition), 'utf8')).toBe(merged);
});

const definition = 'supabase/functions/_pipelines/mine.ts';

const ticketsWith = (stages: string) => `import { definePipeline } from '../_millrace/mod.ts';
// stages: { these are not }
export const ours = definePipeline({
  name: 'tickets',
  entity: { table: 'public.tickets', key: 'id', projection: 'columns' },
  stages: {\n${stages}  },
});
`;

/** A project in which somebody has written the definitions. */
async function projectWith(definitions: string): Promise<[place: string, at: string[]]> {
  const files = { 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables };
  const place = folderWith(files);
  const at = ['--workdir', place];
  expect((await here('init', ...at)).status).toBe(0);
  // An import may stand anywhere.
  write(place, definition, definitions);
  return [place, at];
}

test('of two commands at once both write, or one says that it wrote nothing', async () => {
  const [place, at] = await projectWith(ticketsWith("    triage: { kind: 'function', function: 'tickets-triage' },\n"));
  const bin = packed.bin;
  const stages = ['a', 'b', 'c', 'd'];
  const ended = await Promise.all(
    stages.map((stage) =>
      promisify(execFile)(bin, ['add', 'tickets', stage, ...at]).then(
        () => [stage],
        ({ stderr }) => {
          expect(stderr).toMatch(/^Nothing was written: .* was changed meanwhile, .*: run this again\.$/m);
          return [];
        },
      ),
    ),
  );
  const wrote = ended.flat();
  const text = fs.readFileSync(path.join(place, definition), 'utf8');
  const config = fs.readFileSync(path.join(place, 'supabase', 'config.toml'), 'utf8');
  expect(wrote.length).toBeGreaterThan(0);
  expect(stages.filter((stage) => text.includes(`'tickets-${stage}'`))).toEqual(wrote);
  expect(stages.filter((stage) => config.includes(`[functions.tickets-${stage}]`))).toEqual(wrote);
});

test('a stage that asks a model has what it imports mapped, and its person is told what the test needs', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  expect((await here('init', ...at)).status).toBe(0);
  const { stdout } = await here('add', 'tickets', 'sum_up', '--model', ...at);
  expect(stdout).toMatch(/^Next: npm i -D openai@\d+\.\d+\.\d+, which the tests import with the handlers; write what/m);
  write(place, 'node_modules/openai/package.json', '{"name": "openai", "main": "index.js"}');
  write(place, 'node_modules/openai/index.js', '');
  expect((await here('add', 'tickets', 'judge', '--model', ...at)).stdout).toContain('Next: write what');
  const map = 'supabase/functions/tickets-judge/deno.json';
  const { imports } = JSON.parse(fs.readFileSync(path.join(place, map), 'utf8'));
  const { openai, 'openai/': below, ...others } = imports;
  expect(below).toBe(`${openai.replace(':', ':/')}/`);
  write(place, map, JSON.stringify({ imports: others }));
  const { stderr } = await here('check', ...at);
  expect(stderr).toContain(
    `tickets-judge imports openai, which its deno.json does not map: add "openai":"${openai}","openai/":"${below}" to imports.`,
  );
  expect(stderr).not.toContain('tickets-sum-up imports');
});

test('whatever add takes as a name, its files can carry, and it takes no table or key that sync refuses', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  expect((await here('init', ...at)).status).toBe(0);
  const before = filesOf(place);
  const refused: [string[], string][] = [
    [['--table', 'public.tick(ets'], 'entity.table is "public.tick(ets", but must be schema.table'],
    [['--key', ''], 'entity.key is "", but must be the name of a column'],
  ];
  for (const [option, answer] of refused) {
    expect(await here('add', 'tickets', 'send', ...option, ...at)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(answer),
    });
  }
  expect((await here('add', 'tickets', 'serve', ...at)).stderr).toContain("serve cannot be a stage's name");
  expect(filesOf(place)).toEqual(before);
  for (const line of ['class a', 'service c --external', "d_row d --key it's"]) {
    expect(await here('add', ...line.split(' '), '--table', 'public.tickets', ...at)).toMatchObject({ status: 0 });
  }
  // Under whichever name its author has exported it.
  write(
    place,
    'supabase/functions/_pipelines/own.ts',
    "import { definePipeline } from '../_millrace/mod.ts';\n" +
      "export const output = definePipeline({ name: 'own', entity: { table: 'public.tickets', key: 'id', projection: 'none' }, stages: {\n  } });\n",
  );
  expect(await here('add', 'own', 'e', ...at)).toMatchObject({ status: 0 });
  expect((await here('check', ...at)).stderr).toMatch(/^No migration defines the present state of: .*\n$/);
});
