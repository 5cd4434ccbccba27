import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { projectFolder, runNode } from './run-command.ts';

let copy: string;

beforeEach(() => {
  copy = fs.mkdtempSync(path.join(os.tmpdir(), 'sync-test-'));
  for (const part of ['package.json', 'local', 'supabase/functions', 'supabase/migrations']) {
    fs.cpSync(path.join(projectFolder, part), path.join(copy, part), { recursive: true });
  }
  fs.symlinkSync(path.join(projectFolder, 'node_modules'), path.join(copy, 'node_modules'));
});
afterEach(() => {
  fs.rmSync(copy, { recursive: true, force: true });
});

const sync = (...args: string[]) => runNode(['--import', 'tsx', 'local/pipelines-sync.ts', ...args], { cwd: copy });
const readMigrations = () => {
  const folder = path.join(copy, 'supabase', 'migrations');
  const names = fs.readdirSync(folder).sort();
  return names.map((name) => ({ name, text: fs.readFileSync(path.join(folder, name), 'utf8') }));
};

/** Adds a stage `grade` to the end of the leads pipeline, as a user would. */
function addStage() {
  const file = path.join(copy, 'supabase', 'functions', '_pipelines', 'leads.ts');
  const before = fs.readFileSync(file, 'utf8');
  const after = before.replace(
    /( +messaging: \{.*\},\n)/,
    "$1    grade: { ...modelStage, function: 'leads-grade', needs: ['messaging'] },\n",
  );
  expect(after).not.toBe(before);
  fs.writeFileSync(file, after);
}

it('has nothing to write and passes --check when the migrations define the pipelines', async () => {
  const before = readMigrations();
  expect(await sync('--check')).toMatchObject({ code: 0, stderr: '' });
  expect(await sync()).toMatchObject({ code: 0, stderr: '' });
  expect(readMigrations()).toEqual(before);
});

it('answers a new stage with one new migration, the last, that adds its columns and defines it', async () => {
  const before = readMigrations();
  addStage();
  const missing = await sync('--check');
  expect(missing.code).toBe(1);
  expect(missing.stderr).toContain('leads. Run `npm run pipelines:sync`');
  expect(readMigrations()).toEqual(before);

  expect(await sync()).toMatchObject({ code: 0 });
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
    const { rows } = await client.query('select grade_status, grade_retry_count, grade_result from public.leads');
    expect(rows).toEqual([{ grade_status: 'pending', grade_retry_count: 0, grade_result: null }]);
    const stages = await client.query("select name from pipeline.stages where function_name = 'leads-grade'");
    expect(stages.rows).toEqual([{ name: 'grade' }]);
  } finally {
    await database.drop();
  }
});
