import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readTypes, syncPipelines } from '../../cli/sync/sync-pipelines.ts';
import { createTestDatabase } from '../support/database.ts';
import { type Ended, projectFolder, runNode } from './run-command.ts';

const functionsFolder = path.join(projectFolder, 'supabase', 'functions');
/** A project's `supabase` folder, in a folder of its own: the pipelines, migrations and settings are copies, all else is linked. */
let copy: string;

beforeEach(() => {
  copy = fs.mkdtempSync(path.join(os.tmpdir(), 'sync-test-'));
  const functions = path.join(copy, 'supabase', 'functions');
  fs.mkdirSync(functions, { recursive: true });
  for (const part of ['config.toml', 'migrations', 'functions/_pipelines']) {
    fs.cpSync(path.join(projectFolder, 'supabase', part), path.join(copy, 'supabase', part), { recursive: true });
  }
  for (const name of fs.readdirSync(functionsFolder).filter((name) => name !== '_pipelines')) {
    fs.symlinkSync(path.join(functionsFolder, name), path.join(functions, name));
  }
});
afterEach(() => {
  fs.rmSync(copy, { recursive: true, force: true });
});

/** Takes all pipelines but the leads out of the copy, for what one pipeline proves as well as twelve: loading them takes a second. */
function keepLeadsAlone() {
  const supabase = path.join(copy, 'supabase');
  const remove = (folder: string, isKept: RegExp) => {
    const names = fs.readdirSync(path.join(supabase, folder)).filter((name) => !isKept.test(name));
    for (const name of names) fs.rmSync(path.join(supabase, folder, name));
  };
  remove('functions', /^(_|deno\.json|job-complete|leads-|millrace)/);
  remove('functions/_pipelines', /^(leads|shared-limits|stage-defaults)/);
  remove('migrations', /^\d+_(?!pipeline_)|_pipeline_leads\.sql$/);
  const config = path.join(supabase, 'config.toml');
  const others = /^\[functions\.(?!leads-|job-complete|millrace)[^\]]+\]\n([^[].*\n|\n)*/gm;
  fs.writeFileSync(config, fs.readFileSync(config, 'utf8').replace(others, ''));
}

/** Runs the command itself, in a project. */
const run = (cwd: string, ...args: string[]) => runNode(['--import', 'tsx', 'tools/sync.ts', ...args], { cwd });

let calls = 0;

/** Does what the command does to the copy, without starting it. */
async function sync(...args: string[]): Promise<Ended> {
  // A process loads a file once, so that each call finds the pipelines in files of their own.
  const seen = path.join(copy, `seen-${calls++}`);
  fs.mkdirSync(path.join(seen, 'functions'), { recursive: true });
  for (const part of ['config.toml', 'migrations', ...functionParts()]) {
    fs.symlinkSync(path.join(copy, 'supabase', part), path.join(seen, part));
  }
  fs.cpSync(path.join(copy, 'supabase', 'functions', '_pipelines'), path.join(seen, 'functions', '_pipelines'), {
    recursive: true,
  });
  const written = { log: '', warn: '' };
  const add = (kind: keyof typeof written) => (line: string) => {
    written[kind] += `${line}\n`;
  };
  try {
    await syncPipelines(seen, args.includes('--check'), {
      command: 'npm run pipelines:sync',
      log: add('log'),
      warn: add('warn'),
    });
    return { code: 0, stdout: written.log, stderr: written.warn };
  } catch (error) {
    return { code: 1, stdout: written.log, stderr: `${written.warn}${(error as Error).message}\n` };
  }
}

const functionParts = () =>
  fs
    .readdirSync(path.join(copy, 'supabase', 'functions'))
    .filter((name) => name !== '_pipelines')
    .map((name) => `functions/${name}`);

/** Makes the copy a project that the command itself runs in. */
function completeCopy() {
  for (const part of ['package.json', 'cli', 'tools', 'local']) {
    fs.cpSync(path.join(projectFolder, part), path.join(copy, part), { recursive: true });
  }
  fs.symlinkSync(path.join(projectFolder, 'node_modules'), path.join(copy, 'node_modules'));
}

const readMigrations = () => {
  const folder = path.join(copy, 'supabase', 'migrations');
  const names = fs.readdirSync(folder).sort();
  return names.map((name) => ({ name, text: fs.readFileSync(path.join(folder, name), 'utf8') }));
};

/** Replaces text in a file of the copy. */
function edit(file: string, wanted: string | RegExp, replacement: string) {
  const before = fs.readFileSync(path.join(copy, file), 'utf8');
  const after = before.replace(wanted, replacement);
  expect(after).not.toBe(before);
  fs.writeFileSync(path.join(copy, file), after);
}

/** Adds a stage `probe` to the end of the leads pipeline, as a user would, without its function. */
function addStage(needs = 'messaging') {
  const stage = `    probe: { ...modelStage, function: 'leads-probe', needs: ['${needs}'] },\n`;
  edit('supabase/functions/_pipelines/leads.ts', /( +messaging: \{.*\},\n)/, `$1${stage}`);
}

const configuration = '\n[functions.leads-probe]\nverify_jwt = false\nimport_map = "./functions/deno.json"\n';
const configure = () => fs.appendFileSync(path.join(copy, 'supabase', 'config.toml'), configuration);
function addFunction() {
  fs.mkdirSync(path.join(copy, 'supabase', 'functions', 'leads-probe'));
  fs.writeFileSync(path.join(copy, 'supabase', 'functions', 'leads-probe', 'index.ts'), '');
}

it('sync has nothing to write and passes --check when the migrations define the pipelines', async () => {
  const before = readMigrations();
  expect(await sync('--check')).toMatchObject({ code: 0, stderr: '' });
  expect(await sync()).toMatchObject({ code: 0, stderr: '' });
  expect(readMigrations()).toEqual(before);
});

it('answers a new stage with one new migration, the last, that adds its columns and defines it', async () => {
  keepLeadsAlone();
  const before = readMigrations();
  addStage();
  addFunction();
  configure();
  const missing = await sync('--check');
  expect(missing.code).toBe(1);
  expect(missing.stderr).toContain('leads. Run `npm run pipelines:sync`');
  expect(readMigrations()).toEqual(before);

  completeCopy();
  expect(await run(copy)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Wrote .*_pipeline_leads\.sql\./) });
  const after = readMigrations();
  expect(after.slice(0, -1)).toEqual(before);
  expect(await sync('--check')).toMatchObject({ code: 0 });

  const database = await createTestDatabase();
  try {
    const client = await database.connect();
    await client.query(after.at(-1)?.text ?? '');
    await client.query(
      `insert into public.leads (email, company_url, account_id)
       values ('office@nets.example', 'https://nets.example', gen_random_uuid())`,
    );
    await client.query(`update public.leads set scrape_status = 'queued'`);
    const { rows } = await client.query('select probe_status, probe_retry_count, probe_result from public.leads');
    expect(rows).toEqual([{ probe_status: 'pending', probe_retry_count: 0, probe_result: null }]);
    const stages = await client.query("select name from millrace.stages where function_name = 'leads-probe'");
    expect(stages.rows).toEqual([{ name: 'probe' }]);
  } finally {
    await database.drop();
  }
});

it('fails, in one sentence and writing nothing, while the function of a stage is missing', async () => {
  keepLeadsAlone();
  const before = readMigrations();
  addStage();
  configure();
  for (const args of [['--check'], []]) {
    const { code, stderr } = await sync(...args);
    expect(code).toBe(1);
    expect(stderr).toContain(
      'Stage probe of pipeline leads runs in function leads-probe, which does not exist: write ',
    );
    expect(stderr).toContain('supabase/functions/leads-probe/index.ts');
    expect(stderr).not.toContain('config.toml');
  }
  expect(readMigrations()).toEqual(before);
});

it('sync takes the columns that inputs of handlers require into the definition, and fails while a handler does not load', async () => {
  keepLeadsAlone();
  const folder = path.join(copy, 'supabase', 'functions', 'leads-scrape');
  fs.rmSync(folder);
  fs.cpSync(path.join(functionsFolder, 'leads-scrape'), folder, { recursive: true });
  const handler = 'supabase/functions/leads-scrape/handler.ts';
  edit(handler, 'company_url: ', 'company_phone: z.string().nullable(), fax: z.string().optional(), company_url: ');
  expect((await sync('--check')).stderr).toContain('No migration defines the present state of: leads.');
  expect(await sync()).toMatchObject({ code: 0 });
  const { columns } = lastDefinition() as { columns: { field: string; column: string }[] };
  const asked = columns.filter(({ field }) => field.startsWith('the input of stage scrape'));
  expect(asked.map(({ column }) => column)).toEqual(['company_phone', 'company_url']);
  edit(handler, "stage: 'scrape'", "stage: 'scrap'");
  const before = readMigrations();
  const { code, stderr } = await sync();
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(
      /^supabase\/functions\/leads-scrape\/handler\.ts:\d+: Pipeline leads has no stage scrap: .*\n$/,
    ),
  });
  expect(readMigrations()).toEqual(before);
});

/** The definition in the last migration. */
function lastDefinition(): Record<string, unknown> {
  const text = readMigrations().at(-1)?.text ?? '';
  return JSON.parse(/\$pipeline\$(.*)\$pipeline\$/s.exec(text)?.[1] ?? '');
}

it('fails while two stages name one function', async () => {
  keepLeadsAlone();
  addStage();
  edit('supabase/functions/_pipelines/leads.ts', "function: 'leads-probe'", "function: 'leads-messaging'");
  const { code, stderr } = await sync('--check');
  expect(code).toBe(1);
  expect(stderr).toContain(
    'Stage probe of pipeline leads runs in function leads-messaging, as stage messaging of pipeline leads does: ' +
      'give each stage a function of its own.',
  );
});

it.each([
  ['has no block', ''],
  ['asks for a JWT', configuration.replace('verify_jwt = false', '')],
  ['names no import map', configuration.replace(/import_map.*/, '')],
])('fails while config.toml %s for the function of a stage', async (_, block) => {
  keepLeadsAlone();
  addStage();
  addFunction();
  fs.appendFileSync(path.join(copy, 'supabase', 'config.toml'), block);
  const { code, stderr } = await sync('--check');
  expect(code).toBe(1);
  expect(stderr).toContain('leads-probe, for which supabase/config.toml must say: [functions.leads-probe] with');
  expect(stderr).toContain('verify_jwt = false and import_map = "./functions/deno.json"');
});

/** Writes a file that exports a pipeline for each line `name: stages`, over the leads' rows unless a table is named. */
function addPipelines(file: string, pipelines: [name: string, stages: string, table?: string, more?: string][]) {
  const source = pipelines.map(([name, stages, table = 'public.leads', more = ''], place) => {
    const entity = `{ table: '${table}', key: 'id', projection: 'none' }`;
    return `export const p${place} = definePipeline({ name: '${name}', entity: ${entity}, stages: { ${stages} }, ${more} });`;
  });
  const imports = "import { definePipeline } from '../_millrace/define/define-pipeline.ts';";
  const map = `const map = { kind: 'map' as const, function: 'leads-probe', batchSize: 1, maxWorkers: 1, leaseSeconds: 60,
    timeoutSeconds: 30, retry: { maxAttempts: 1, backoff: { kind: 'list' as const, seconds: [1] } } };`;
  const text = [imports, map, ...source].join('\n');
  fs.writeFileSync(path.join(copy, 'supabase', 'functions', '_pipelines', file), text);
}
const ask = "ask: { kind: 'manual' }";
const childRun = (name: string) => `inner: { kind: 'pipeline', child: { pipeline: '${name}' } }`;

it('defines children before their parents, and asks no function of stages that have none', async () => {
  keepLeadsAlone();
  addPipelines('a-outer.ts', [
    ['outer', childRun('middle')],
    ['middle', childRun('innermost')],
  ]);
  addPipelines('b-inner.ts', [['innermost', ask]]);
  const before = readMigrations();
  const missing = await sync('--check');
  expect(missing).toMatchObject({ code: 1, stdout: '' });
  expect(missing.stderr).toMatch(/^No migration defines the present state of: innermost, middle, outer\. Run/);

  expect(await sync()).toMatchObject({ code: 0 });
  const written = readMigrations().slice(before.length);
  expect(written.map(({ name }) => name.replace(/^\d+_pipeline_|\.sql$/g, ''))).toEqual([
    'innermost',
    'middle',
    'outer',
  ]);
  expect(await sync('--check')).toMatchObject({ code: 0 });

  const database = await createTestDatabase();
  try {
    const client = await database.connect();
    for (const { text } of written) await client.query(text);
    const { rows } = await client.query('select name from millrace.pipelines where is_child order by id');
    // The project's own children come before.
    expect(rows.slice(-2)).toEqual([{ name: 'innermost' }, { name: 'middle' }]);
  } finally {
    await database.drop();
  }
});

it('fails, in one sentence and writing nothing, when pipelines say something wrong of one another', async () => {
  keepLeadsAlone();
  const before = readMigrations();
  const late = "late: { kind: 'manual', after: [{ map: 'split', stage: 'asked', all: true }] }";
  addPipelines('wrong.ts', [
    ['lost', childRun('nowhere')],
    ['hen', childRun('egg')],
    ['egg', childRun('hen')],
    ['inner', ask],
    ['outer', `split: { ...map, child: { pipeline: 'inner' } }, ${late}`],
    ['inner', ask, 'public.items'],
    ['far', childRun('egg'), 'public.items'],
  ]);
  const { code, stderr } = await sync();
  expect(code).toBe(1);
  const sentences = stderr.split('\n');
  for (const expected of [
    'Pipeline inner is defined twice: give each a name of its own.',
    'Stage inner of pipeline lost starts runs of pipeline nowhere, which no file of _pipelines exports.',
    'Pipelines hen → egg → hen need one another, so that none can be defined first: remove one of these references.',
    'Stage late of pipeline outer waits for stage asked of pipeline inner, which has no such stage: correct its after.',
    'Stage inner of pipeline far is of kind pipeline, whose child runs over the same row, but pipeline egg is over ' +
      'public.leads.id and not public.items.id: use the kind map.',
  ]) {
    expect(sentences).toContain(expected);
  }
  expect(readMigrations()).toEqual(before);
});

it('sync asks for two steps when a stage is to go that a parent counted so far', async () => {
  keepLeadsAlone();
  addFunction();
  configure();
  const outer = (counted: string): [string, string] => [
    'outer',
    `split: { ...map, child: { pipeline: 'inner' } }, late: { kind: 'manual', after: [{ map: 'split', stage: '${counted}', all: true }] }`,
  ];
  const tell = "tell: { kind: 'manual' }";
  addPipelines('family.ts', [['inner', ask], outer('ask')]);
  expect(await sync()).toMatchObject({ code: 0 });
  const before = readMigrations();
  addPipelines('family.ts', [['inner', tell], outer('tell')]);
  expect(await sync()).toMatchObject({
    code: 1,
    stderr:
      'Pipeline inner drops stage ask, which stage late of pipeline outer counts in the migrations: ' +
      'keep it for now, change outer and run this, then drop it and run this again.\n',
  });
  expect(readMigrations()).toEqual(before);
  for (const stages of [`${ask}, ${tell}`, tell]) {
    addPipelines('family.ts', [['inner', stages], outer('tell')]);
    expect(await sync()).toMatchObject({ code: 0 });
  }
  const database = await createTestDatabase();
  try {
    const client = await database.connect();
    const defined = readMigrations().filter(({ name }) => /_pipeline_(inner|outer)\.sql$/.test(name));
    expect(defined).toHaveLength(5);
    for (const { text } of defined) await client.query(text);
  } finally {
    await database.drop();
  }
});

it('stamps what it writes after the newest migration and never in the future, however soon it runs again', async () => {
  const before = readMigrations();
  addStage();
  addFunction();
  configure();
  await sync();
  edit('supabase/functions/_pipelines/leads.ts', /batchSize: 5/g, 'batchSize: 11');
  edit('supabase/functions/_pipelines/toc.ts', /batchSize: \d+/, 'batchSize: 12');
  expect(await sync()).toMatchObject({ code: 0 });

  const now = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const stamps = readMigrations().map(({ name }) => name.slice(0, 14));
  expect(stamps.length).toBe(before.length + 3);
  expect(new Set(stamps).size).toBe(stamps.length);
  expect(stamps.slice(0, before.length)).toEqual(before.map(({ name }) => name.slice(0, 14)));
  expect(stamps.filter((stamp) => stamp > now)).toEqual([]);
});

it('sync writes nothing after a migration that is stamped in the future, and names that one with the remedy', async () => {
  keepLeadsAlone();
  addStage();
  addFunction();
  configure();
  const file = path.join(copy, 'supabase', 'migrations', '29990101000000_early.sql');
  fs.writeFileSync(file, 'select 1;');
  const before = readMigrations();
  const { code, stderr } = await sync();
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^supabase\/migrations\/29990101000000_early\.sql is stamped in the future .*: rename it .*\n$/,
  );
  expect(readMigrations()).toEqual(before);
});

it('warns of grants on a whole table that shows stages, with the statements that leave users their own columns', async () => {
  const migration = (name: string, text: string) =>
    fs.writeFileSync(path.join(copy, 'supabase', 'migrations', `${name}.sql`), text);
  migration(
    '20261101002001_grants',
    `-- it's not "grant all on public.books to anon";
    grant select, update on table public.leads to authenticated, service_role;
    grant insert (email), update (email) on public.leads to anon;
    grant all on public.books to anon; revoke insert, update on books from anon;
    do $$ begin execute 'grant all on public.pages to anon'; end $$;
    GRANT ALL ON ALL TABLES IN SCHEMA "public" TO reporters WITH GRANT OPTION;
    revoke all on public.books, public.pages, public.document from reporters;`,
  );
  const { code, stderr } = await sync('--check');
  expect(code).toBe(0);
  // A user who added a stage has one more column.
  expect(stderr.replace(/messaging_status, [a-z_, ]+/, 'messaging_status')).toBe(
    `authenticated may update all columns of public.leads, and so write results such as scrape_result, which only the engine should. In a new migration, with your own columns for …:
  revoke update on public.leads from authenticated;
  grant update (…, scrape_status, intel_status, strategy_status, subject_status, messaging_status) on public.leads to authenticated;
reporters may insert and update all columns of public.leads, and so write results such as scrape_result, which only the engine should. In a new migration, with your own columns for …:
  revoke insert, update on public.leads from reporters;
  grant insert (…), update (…) on public.leads to reporters;
`,
  );
});

it('sync says what is wrong with a definition in one sentence that names its file', async () => {
  keepLeadsAlone();
  addStage('stratgy');
  const { code, stdout, stderr } = await sync('--check');
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^supabase\/functions\/_pipelines\/leads\.ts: .*stages\.probe\.needs names stratgy.*\n$/);
});

it('sync refuses a condition that the database could not read, before a migration is written', async () => {
  keepLeadsAlone();
  const leads = 'supabase/functions/_pipelines/leads.ts';
  const before = readMigrations();
  edit(leads, "needs: ['intel'] }", "needs: ['intel'], when: '$.needs.intel.score = 1' }");
  for (const args of [['--check'], []]) {
    const { code, stderr } = await sync(...args);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `stages.strategy.when is "$.needs.intel.score = 1", but must be a jsonpath predicate: syntax error at or near "=". Write for example `,
    );
  }
  edit(leads, 'intel.score = 1', 'intel.score');
  expect((await sync()).stderr).toContain('it is neither true nor false: compare what it finds with something');
  expect(readMigrations()).toEqual(before);
});

it('sync refuses unknown arguments, and shows its usage when asked', async () => {
  for (const wrong of ['--chek', 'leads']) {
    const { code, stderr } = await run(projectFolder, wrong);
    expect(code).toBe(2);
    expect(stderr).toContain(`'${wrong}'.\n`);
    expect(stderr).toContain('npm run pipelines:sync -- [--check]');
  }
  expect(await run(projectFolder, '--help')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('--check  write nothing'),
  });
});

/** Writes a file of `_pipelines` that defines limits. */
function shareLimits(limits: string, file = 'shared-limits.ts') {
  const text = `import { defineSharedLimits } from '../_millrace/define/define-shared-limits.ts';
export const sharedLimits = defineSharedLimits({ ${limits} });`;
  fs.writeFileSync(path.join(copy, 'supabase', 'functions', '_pipelines', file), text);
}
const underLimits = (names: string) =>
  edit('supabase/functions/_pipelines/pages.ts', /maxInFlight: 400[^}]*\} /, `shared: [${names}]`);

it('sync refuses a limit that two files define', async () => {
  keepLeadsAlone();
  shareLimits('model: { maxInFlight: 5 }');
  shareLimits('model: { maxInFlight: 6 }', 'other-limits.ts');
  expect((await sync()).stderr).toContain('Shared limit model is defined twice: give each a name of its own.');
});

it('defines shared limits before the pipelines that name them, and drops them after', async () => {
  const before = readMigrations();
  underLimits(`'site'`);
  expect((await sync()).stderr).toContain(
    'Stage ocr of pipeline pages names the shared limit site, which no file of _pipelines defines: those there are: scrapes, ' +
      'model; define it with defineSharedLimits() in _pipelines/shared-limits.ts.',
  );
  expect(readMigrations()).toEqual(before);
  const file = 'limits-of-sites.ts';
  shareLimits('site: { maxInFlight: 5 }, other: { rate: { count: 1, perSeconds: 60 } }', file);
  expect((await sync('--check')).stderr).toContain('the shared limits, pages.');
  expect(await sync()).toMatchObject({ code: 0 });
  const [limits, pages, ...none] = readMigrations().slice(before.length);
  expect(none).toEqual([]);
  expect(limits?.name).toMatch(/_shared_limits\.sql$/);
  expect(limits?.text).toContain(`select millrace.define_limit('site', $limit${'$'}{"max_in_flight":5}$limit$);`);
  expect(pages?.name).toMatch(/_pipeline_pages\.sql$/);
  expect(await sync('--check')).toMatchObject({ code: 0 });

  shareLimits('site: { maxInFlight: 6 }', file);
  expect(await sync()).toMatchObject({ code: 0 });
  const [changed, dropped] = readMigrations().slice(before.length + 2);
  expect(changed?.text).toMatch(/define_limit\('site', \$limit\$\{"max_in_flight":6\}/);
  expect(changed?.text).not.toContain(`'other'`);
  expect(dropped?.name).toMatch(/_dropped_limits\.sql$/);
  expect(dropped?.text).toContain(`select millrace.drop_limit('other');`);
  expect(await sync('--check')).toMatchObject({ code: 0 });

  const database = await createTestDatabase();
  try {
    const client = await database.connect();
    for (const migration of [limits, pages, changed, dropped]) await client.query(migration?.text ?? '');
    const { rows } = await client.query('select name, stages, today from millrace.shared_limit_state where name = $1', [
      'site',
    ]);
    expect(rows).toEqual([{ name: 'site', stages: ['pages.ocr'], today: { max_in_flight: 6 } }]);
  } finally {
    await database.drop();
  }
});

it('sync refuses to drop a limit that a pipeline without a file still names', async () => {
  const before = readMigrations();
  fs.rmSync(path.join(copy, 'supabase', 'functions', '_pipelines', 'links.ts'));
  shareLimits('model: { maxInFlight: 5 }');
  const { code, stderr } = await sync();
  expect(code).toBe(1);
  expect(stderr).toContain(
    'Shared limit scrapes cannot go: stage scrape_job of pipeline links names it, whose file is gone but which the database ' +
      'keeps. Keep the limit; or bring the file back, take scrapes out of limits.shared, run this, and remove both then.\n',
  );
  expect(stderr).not.toContain('limit model');
  expect(readMigrations()).toEqual(before);
});

it('sync says that the database keeps a pipeline whose file is gone', async () => {
  const before = readMigrations();
  fs.rmSync(path.join(copy, 'supabase', 'functions', '_pipelines', 'links.ts'));
  const { code, stderr } = await sync();
  expect(code).toBe(0);
  expect(stderr).toBe(
    'Pipeline links has no file any more, but a database that has taken its migration goes on with it: to stop it, ' +
      `select millrace.pause('links'). Where none has, delete the migration.\n`,
  );
  expect(readMigrations()).toEqual(before);
});

it('sync writes the types of stages, results and errors for a page’s code', async () => {
  const types = await readTypes(functionsFolder);
  expect(types).toContain("export interface Leads {\n  pipeline: 'leads';");
  expect(types).toMatch(/^ {4}scrape: \{ result: \{ /m);
  expect(types).toContain('summarize: { result: { summary: string }; error: "invalid_output" };');
  // A stage of a person has no code that says its result.
  expect(types).toContain('    review: { result: unknown; error: string };');
});
