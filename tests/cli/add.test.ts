// Pipelines and stages that `millrace add` writes, into whatever is there.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { fetchPackages } from '../../local/platform/functions/fetch-packages.ts';
import { PackedProject, tables, write } from '../support/cli/packed-project.ts';

const packed = new PackedProject();
const { here, filesOf, folderWith } = packed;

test('an example comes as the user’s own code, by itself, and leaves alone what is there', async () => {
  const place = folderWith({ 'supabase/config.json': '{}', 'supabase/functions/_pipelines/leads.ts': '// Mine.\n' });
  const at = ['--workdir', place];
  const before = filesOf(place);
  expect(await here('init', '--example', 'lead', ...at)).toMatchObject({
    status: 2,
    stderr: 'There is no example lead: choose one of leads, documents, links, articles, books, embeddings.\n',
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
  const types = ['sync', '--types=src/pipelines.ts', ...at];
  expect(await here(...types, '--check')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('run `npx millrace sync --types=src/pipelines.ts`'),
  });
  expect(Object.keys(filesOf(place))).not.toContain('src/pipelines.ts');
  expect((await here(...types)).stdout).toContain('wrote src/pipelines.ts');
  expect(await here(...types, '--check')).toMatchObject({ status: 0, stderr: '' });
  write(place, 'src/pipelines.ts', 'export interface Leads {}\n');
  expect((await here(...types, '--check')).status).toBe(1);
  // As `millrace dev` does: `check` weighs functions by what Deno has fetched, and fetches nothing itself.
  expect(await fetchPackages(path.join(place, 'supabase', 'functions'))).toEqual([]);
  expect(await here('check', ...at)).toMatchObject({ status: 0, stderr: '' });
  // A file that begins as `sync` writes it is a file of types, wherever it stands.
  write(
    place,
    'web/src/leads.ts',
    '// Written by `npx millrace sync --types` from supabase/functions/_pipelines. Do not edit it.\n',
  );
  expect(await here('check', ...at)).toMatchObject({
    status: 1,
    stderr:
      'web/src/leads.ts has other types than the definitions: run `npx millrace sync --types=web/src/leads.ts`.\n',
  });
  expect((await here('sync', '--types=web/src/leads.ts', ...at)).status).toBe(0);
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
  // As pnpm leaves it: no package is found but those that the project asks for.
  expect((await here('add', 'tickets', 'triage', ...at)).stdout).toMatch(
    /^Next: npm i -D zod@4\S+ @supabase\/postgrest-js@\S+ standardwebhooks@\S+ ipaddr\.js@\S+, which the tests import with/m,
  );
  for (const name of ['zod', '@supabase/postgrest-js', 'standardwebhooks', 'ipaddr.js']) {
    fs.mkdirSync(path.dirname(path.join(place, 'node_modules', name)), { recursive: true });
    fs.symlinkSync(path.join(packed.place, 'node_modules', name), path.join(place, 'node_modules', name));
  }
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

test('the first stage at batch prices brings what carries batches, and the second nothing but itself', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  expect((await here('init', ...at)).status).toBe(0);
  const before = filesOf(place);
  expect((await here('add', 'tickets', 'triage', '--batch', ...at)).stderr).toContain('Say --batch with --model');
  write(place, 'supabase/functions/model-batches-begin/index.ts', '');
  expect((await here('add', 'tickets', 'triage', '--model', '--batch', ...at)).stderr).toContain(
    'supabase/functions/model-batches-begin is there, but no definition has pipeline model_batches',
  );
  fs.rmSync(path.join(place, 'supabase/functions/model-batches-begin'), { recursive: true });
  expect(filesOf(place)).toEqual(before);

  expect(await here('add', 'tickets', 'triage', '--model', '--batch', ...at)).toMatchObject({ status: 0, stderr: '' });
  const first = filesOf(place);
  const added = (files: object, others: object) =>
    Object.keys(files)
      .filter((name) => !(name in others))
      .map((name) => name.replace(/\d{14}/, 'STAMP'))
      .sort();
  const ofStage = (stage: string) => [
    ...['deno.json', 'handler.ts', 'index.ts'].map((file) => `supabase/functions/tickets-${stage}/${file}`),
    `tests/tickets-${stage}.test.ts`,
  ];
  expect(added(first, before)).toEqual(
    [
      'supabase/functions/_pipelines/model-batches.ts',
      'supabase/functions/_pipelines/tickets.ts',
      ...['begin', 'distribute'].flatMap((stage) =>
        ['deno.json', 'index.ts'].map((file) => `supabase/functions/model-batches-${stage}/${file}`),
      ),
      'supabase/migrations/STAMP_model_batches.sql',
      ...ofStage('triage'),
    ].sort(),
  );
  expect(first['supabase/config.toml']).toContain('[functions.model-batches-distribute]');

  // As the person is told to: the definition of model_batches imports what the model's client needs.
  const modules = path.join(import.meta.dirname, '../../node_modules');
  fs.symlinkSync(modules, path.join(place, 'node_modules'));
  expect(await here('add', 'tickets', 'reply', '--model', '--batch', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(added(filesOf(place), first)).toEqual(ofStage('reply'));
  expect(await here('sync', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(Object.keys(filesOf(place)).join()).toContain('_pipeline_model_batches.sql');

  const compilerOptions = {
    ...{ strict: true, noUnusedLocals: true, noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true },
    ...{ module: 'esnext', moduleResolution: 'bundler', target: 'es2023', lib: ['es2024', 'dom', 'dom.iterable'] },
  };
  const include = ['supabase/functions/model-batches-*/*.ts', 'supabase/functions/tickets-*/*.ts', 'tests/*.ts'];
  write(place, 'tsconfig.json', JSON.stringify({ compilerOptions, include }));
  const { stdout } = spawnSync(path.join(modules, '.bin/tsc'), ['--project', place], { encoding: 'utf8' });
  expect(stdout.split('\n').filter((line) => !line.includes('supabase/functions/_millrace/') && line)).toEqual([]);
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

test('a stage is added behind the stages that are named, under a condition, or for a person to decide', async () => {
  const [place, at] = await projectWith(
    ticketsWith(
      "    triage: { kind: 'function', function: 'tickets-triage' },\n    reply: { kind: 'function', function: 'tickets-reply', needs: ['triage'] },\n",
    ),
  );
  const before = filesOf(place);
  const refused: [string[], string][] = [
    [['--needs', 'triage,replies'], 'stages.score.needs names replies, which pipeline tickets does not have'],
    [
      ['--needs', 'triage', '--when', '$.needs.reply.sent == true'],
      'stages.score.when asks for the result of reply, which is none of',
    ],
    [['--when', ''], 'stages.score.when is "", but must be a jsonpath'],
    [
      ['--when', '$.entity.kind = "scan"'],
      String.raw`stages.score.when is "$.entity.kind = \"scan\"", but must be a jsonpath predicate: syntax error at or near "="`,
    ],
    [['--when', '$.entity.urgent'], 'it is neither true nor false: compare what it finds with something'],
    [['--external', '--manual'], 'Say --external or --manual, not both.'],
  ];
  for (const [options, answer] of refused) {
    expect((await here('add', 'tickets', 'score', ...options, ...at)).stderr).toContain(answer);
  }
  expect(filesOf(place)).toEqual(before);

  const when = '$.needs.triage.kind == "it\'s"';
  expect(await here('add', 'tickets', 'score', 'tag', '--needs', 'triage', '--when', when, ...at)).toMatchObject({
    status: 0,
    stderr: '',
  });
  const begun = filesOf(place);
  const { stdout } = await here('add', 'tickets', 'approve', '--manual', '--needs', 'score,tag', ...at);
  expect(stdout).toContain(
    'Next: write the schema of the answer into the definition of tickets, and in a migration the',
  );
  expect(filesOf(place)).toEqual({ ...begun, [definition]: expect.anything() });
  expect((await here('add', 'tickets', 'log', '--needs', '', ...at)).status).toBe(0);
  const text = fs.readFileSync(path.join(place, definition), 'utf8');
  for (const stage of ['score', 'tag']) {
    expect(text).toContain(
      `${stage}: { kind: 'function', function: 'tickets-${stage}', needs: ['triage'], when: '$.needs.triage.kind == "it\\'s"' },\n`,
    );
  }
  expect(text).toContain(
    "approve: { kind: 'manual', needs: ['score', 'tag'], decision: { schema: { type: 'object', properties: { verdict: { enum: ['accept', 'reject'] } }, required: ['verdict'] } } },\n",
  );
  expect(text).toContain("log: { kind: 'function', function: 'tickets-log' },\n");
  expect((await here('add', 'tickets', 'approve', '--manual', ...at)).stdout).toBe(
    'Nothing to do: all of it is there.\n',
  );
  // A pipeline of its own begins as the options say, too.
  const one = ['checks', 'first', 'second', '--table', 'tickets', '--needs', ''];
  expect((await here('add', ...one, ...at)).status).toBe(0);
  const checks = fs.readFileSync(path.join(place, 'supabase/functions/_pipelines/checks.ts'), 'utf8');
  expect(checks).not.toContain('needs');
  expect(checks, 'a table without a schema is of public').toContain("table: 'public.tickets'");
});

test('remove takes a stage away with its function, section and test, and whatever it cannot take it names', async () => {
  const place = folderWith({
    'supabase/config.toml': '[functions.mine]\nverify_jwt = false\n',
    'supabase/functions/mine/index.ts': '',
    'supabase/migrations/20260101000000_t.sql': tables,
  });
  const at = ['--workdir', place];
  for (const line of ['init', 'add tickets triage']) expect((await here(...line.split(' '), ...at)).status).toBe(0);
  const before = filesOf(place);
  for (const line of ['add tickets reply --external', 'add tickets decide --manual --needs triage']) {
    expect((await here(...line.split(' '), ...at)).status).toBe(0);
  }
  const refused: [string, string][] = [
    ['remove tickets', 'Name a pipeline and its stages.'],
    ['remove calls hear', 'There is no pipeline calls in supabase/functions/_pipelines, and there is no'],
    ['remove tickets close', 'Pipeline tickets has no stage close: it has triage, reply, decide, and there is no'],
    ['remove tickets triage', 'Stage reply of pipeline tickets needs triage: write into its needs in supabase/'],
    ['remove tickets triage reply decide', "would have no stage: to end it, run `select millrace.pause('tickets')`"],
  ];
  const all = filesOf(place);
  for (const [line, answer] of refused) expect((await here(...line.split(' '), ...at)).stderr).toContain(answer);
  expect(filesOf(place)).toEqual(all);
  // A commentary of the stage's own goes with it.
  const file = 'supabase/functions/_pipelines/tickets.ts';
  write(
    place,
    file,
    (all[file] ?? '').replace('    reply:', '    /** Answers: {\n     * by mail. */\n    // Slow.\n    reply:'),
  );
  const shown = await here('remove', 'tickets', 'reply', 'decide', '--dry-run', ...at);
  expect(shown.stdout).toContain('-export async function replyRow(');
  expect(await here('remove', 'tickets', 'reply', 'decide', ...at)).toMatchObject({
    status: 0,
    stderr: '',
    stdout: expect.stringContaining('Next: npx millrace sync, or npx millrace sync --columns, which also drops'),
  });
  expect(filesOf(place)).toEqual(before);
});

test('remove deletes no code that somebody wrote and no commit has, unless it is told to', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  for (const line of ['init', 'add tickets triage reply'])
    expect((await here(...line.split(' '), ...at)).status).toBe(0);
  const handler = 'supabase/functions/tickets-reply/handler.ts';
  fs.appendFileSync(path.join(place, handler), '// Mine.\n');
  write(place, 'supabase/functions/tickets-reply/words.ts', 'export {};\n');
  const edited = `You have edited ${handler}, supabase/functions/tickets-reply/words.ts, and no commit has what you wrote there`;
  const before = filesOf(place);
  expect(await here('remove', 'tickets', 'reply', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(edited),
  });
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', place, '-c', 'user.name=a', '-c', 'user.email=a@a', ...args]);
  git('init', '-q');
  expect((await here('remove', 'tickets', 'reply', ...at)).stderr).toContain(edited);
  expect(filesOf(place)).toMatchObject(before);
  git('add', '-A');
  git('commit', '-qm', 'all');
  expect(await here('remove', 'tickets', 'reply', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(fs.existsSync(path.join(place, 'supabase/functions/tickets-reply'))).toBe(false);
  git('reset', '-q', '--hard');
  fs.appendFileSync(path.join(place, handler), '// More.\n');
  expect((await here('remove', 'tickets', 'reply', ...at)).stderr).toContain(
    `You have edited ${handler}, and no commit`,
  );
  expect((await here('remove', 'tickets', 'reply', '--force', ...at)).status).toBe(0);
});

test('rename gives a stage another name in all that add wrote, says what is left, and sync renames its columns', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  const lines = [
    'init',
    'add tickets triage reply',
    'add tickets grade --needs reply --when $.needs.reply.done==true',
    'add tickets close --needs reply --when $.needs."reply".done==true&&$.entity.reply_result!=null',
    'sync',
  ];
  for (const line of lines) expect((await here(...line.split(' '), ...at)).status, line).toBe(0);
  const handler = 'supabase/functions/tickets-grade/handler.ts';
  fs.appendFileSync(path.join(place, handler), '// Reads needs.reply.\n');
  const refused: [string, string][] = [
    ['rename tickets reply', 'Name a pipeline, its stage and the new name.'],
    ['rename calls hear listen', 'There is no pipeline calls in supabase/functions/_pipelines'],
    ['rename tickets call ring', 'Pipeline tickets has no stage call: it has triage, reply, grade, close.'],
    ['rename tickets reply grade', 'Pipeline tickets has a stage grade already'],
    ['rename tickets reply Answer', '"Answer" cannot be a name'],
    ['sync --renamed tickets.reply=answer', 'or `npx millrace rename tickets reply answer` first'],
    ['sync --renamed reply', '--renamed is "reply", but must be PIPELINE.STAGE=NAME'],
  ];
  const before = filesOf(place);
  for (const [line, answer] of refused) expect((await here(...line.split(' '), ...at)).stderr).toContain(answer);
  expect(filesOf(place)).toEqual(before);

  const { status, stderr, stdout } = await here('rename', 'tickets', 'reply', 'answer', ...at);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain(
    `Next: correct reply in the conditions of close where it is the stage; write needs.answer for needs.reply in ${handler}; npx millrace sync --renamed tickets.reply=answer. Once it is deployed, ` +
      'npx supabase functions delete tickets-reply takes the former function away.',
  );
  const after = filesOf(place);
  expect(Object.keys(after).filter((name) => name.includes('reply'))).toEqual([]);
  for (const [name, text] of Object.entries(after))
    if (!name.startsWith('supabase/migrations') && name !== handler)
      expect(text, name).not.toMatch(/\breply(?!\w)|replyRow|replyStage/);
  expect(after['supabase/functions/_pipelines/tickets.ts']).toContain('$.needs."answer".done==true');
  expect(after['supabase/functions/_pipelines/tickets.ts']).toContain(
    "grade: { kind: 'function', function: 'tickets-grade', needs: ['answer'], when: '$.needs.answer.done==true' },",
  );
  expect((await here('sync', '--renamed', 'tickets.reply=answer', ...at)).stderr).not.toContain(
    'has no stage reply any more',
  );
  const [, migration = ''] =
    Object.entries(filesOf(place))
      .filter(([name]) => name.endsWith('_pipeline_tickets.sql'))
      .at(-1) ?? [];
  expect(migration).toContain('alter table public.tickets rename column reply_retry_count to answer_retry_count;');
  expect(migration).not.toContain('add_columns');
  expect(await here('check', ...at)).toMatchObject({ status: 0, stderr: '' });
});

test('a section whose function is gone is named by check, and taken away by sync and remove where add wrote it', async () => {
  const other = '[functions.other]\nverify_jwt = false\n';
  const place = folderWith({
    'supabase/config.toml': `${other}\n[functions.off]\nenabled = false\n`,
    'supabase/migrations/20260101000000_t.sql': tables,
  });
  const at = ['--workdir', place];
  for (const line of ['init', 'add tickets triage reply', 'sync'])
    expect((await here(...line.split(' '), ...at)).status).toBe(0);
  const config = () => fs.readFileSync(path.join(place, 'supabase/config.toml'), 'utf8');
  // As somebody does it by hand.
  const file = path.join(place, 'supabase/functions/_pipelines/tickets.ts');
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/^ {4}reply: .*\n/m, ''));
  fs.rmSync(path.join(place, 'supabase/functions/tickets-reply'), { recursive: true });
  const { stderr } = await here('check', ...at);
  for (const name of ['tickets-reply', 'other']) {
    expect(stderr).toContain(
      `supabase/config.toml has a section for function ${name}, whose supabase/functions/${name}/index.ts does not exist`,
    );
  }
  expect(stderr).not.toContain('function off');
  expect(await here('sync', '--check', ...at)).toMatchObject({ status: 1 });
  expect(config()).toContain('tickets-reply');
  expect((await here('sync', '--columns', ...at)).stdout).toContain('wrote supabase/config.toml');
  expect(config()).not.toContain('tickets-reply');
  expect(config()).toContain(other);
  const texts = Object.entries(filesOf(place)).filter(([name]) => name.endsWith('_pipeline_tickets.sql'));
  expect(texts.at(-1)?.[1]).toContain(
    'alter table public.tickets drop column if exists reply_status, drop column if exists',
  );
  expect((await here('check', ...at)).stderr).toMatch(
    /^supabase\/config\.toml has a section for function other, [^\n]*\n$/,
  );

  // Added and gone again before any migration knew it; what a definition has lost already, remove takes away.
  expect((await here('add', 'tickets', 'close', ...at)).status).toBe(0);
  fs.rmSync(path.join(place, 'supabase/functions/tickets-close'), { recursive: true });
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/^ {4}close: .*\n/m, ''));
  expect((await here('sync', ...at)).status).toBe(0);
  expect(config()).not.toContain('tickets-close');
  expect((await here('add', 'tickets', 'close', ...at)).status).toBe(0);
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/^ {4}close: .*\n/m, ''));
  expect((await here('remove', 'tickets', 'close', ...at)).status).toBe(0);
  expect(config()).not.toContain('tickets-close');
});
