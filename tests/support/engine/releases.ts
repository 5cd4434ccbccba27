// A copy of engine/ as a release of its own, and a next level of it, for tests of installs and upgrades.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type pg from 'pg';
import { installSql, uninstallSql, upgradeSql } from '../../../tools/engine/build.ts';
import { bare } from '../../../tools/engine/catalogue.ts';
import { sourceStatements } from '../../../tools/engine/engine-sql.ts';
import type { Target } from '../../../tools/engine/release.ts';
import { freeze, lastRelease, nextTarget, type Project, readProject } from '../../../tools/engine/releases.ts';

const root = path.join(import.meta.dirname, '..', '..', '..');
const snapshotQuery = fs.readFileSync(path.join(root, 'tools', 'check', 'schema-snapshot.sql'), 'utf8');

/** The level that the migrations of the project lead to. */
export function presentTarget(): Target {
  const project = readProject(root);
  const target = nextTarget(project) ?? lastRelease(project.engine);
  if (!target) throw new Error('the engine is no release and becomes none');
  return { level: target.level, version: target.version, from: null };
}

/** The migration that installs the engine as it is in the project, at its own level. */
export const presentInstall = () => installSql(path.join(root, 'engine'), presentTarget());
export const presentUninstall = () => uninstallSql(path.join(root, 'engine'));

/** The schema of a database, one object or part a line. */
export async function snapshot(client: pg.Client): Promise<string[]> {
  return (await client.query<{ line: string }>(snapshotQuery)).rows.map(({ line }) => line);
}

/** The objects that only the level before the next one has. */
const former = `
create function millrace.former(p_a int) returns int
language sql immutable
as $$ select p_a $$;
comment on function millrace.former(int) is 'Only the former level has it.';
create function millrace.lasting(p_a int) returns text
language sql immutable
as $$ select 'former ' || p_a $$;
comment on function millrace.lasting(int) is 'Every level has it.';
create or replace view millrace.former_view as select millrace.former(1) as one;
create or replace view millrace.lasting_view as select millrace.former(2) as two, 'x'::text as x;
create function millrace.former_check() returns trigger
language plpgsql
as $$ begin return new; end $$;
create trigger former_check before insert on millrace.settings for each row execute function millrace.former_check();
create function public.millrace_former() returns int
language sql stable
as $$ select 1 $$;
revoke all on function public.millrace_former() from public, anon, authenticated;
create function public.millrace_lasting() returns int
language sql stable
as $$ select 1 $$;
revoke all on function public.millrace_lasting() from public, anon, authenticated;
grant execute on function public.millrace_lasting() to authenticated;
select cron.schedule('millrace-former', '10 seconds', 'select 1');
`;

const nextStructure = `
alter table millrace.runs add column next_note text;
create table millrace.next_notes (
  id int constraint next_notes_pkey primary key,
  note text not null
);
comment on table millrace.next_notes is 'What the next level adds.';
`;

const nextCode = `
create function millrace.note_next(p_id int) returns text
language sql stable
as $$ select n.note from millrace.next_notes n where n.id = p_id $$;
create function millrace.lasting(p_a int) returns text
language sql immutable
as $$ select 'next ' || p_a $$;
comment on function millrace.lasting(int) is 'Every level has it.';
create or replace view millrace.lasting_view as select 'x'::text as x, 3 as three;
create function public.millrace_lasting() returns int
language sql stable
as $$ select 2 $$;
revoke all on function public.millrace_lasting() from public, anon, authenticated;
`;

export interface NextLevel {
  level: number;
  /** Installs the level before the next, with some things that go. */
  installFormer: string;
  /** Leads from the former, or from the project's present level, to the next. */
  upgrade: string;
  installNext: string;
  uninstallNext: string;
}

/**
 * Makes a release of today's engine in a scratch folder, and the next level of it: a new file of structure, a new function,
 * functions with other parameters and results, a view with other columns, and without some of what was there.
 */
export async function makeNextLevel(): Promise<NextLevel> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-release-'));
  try {
    fs.cpSync(path.join(root, 'engine'), path.join(folder, 'engine'), { recursive: true });
    fs.rmSync(path.join(folder, 'engine', 'releases'), { recursive: true, force: true });
    fs.mkdirSync(path.join(folder, 'supabase', 'migrations'), { recursive: true });
    fs.copyFileSync(path.join(root, 'package.json'), path.join(folder, 'package.json'));
    return await buildNextLevel(readProject(folder));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function buildNextLevel(project: Project): Promise<NextLevel> {
  const { engine, migrations } = project;
  const features = path.join(engine, 'modules', 'journal', 'scratch.sql');
  fs.writeFileSync(features, former);
  const present = presentTarget();
  const installFormer = await installSql(engine, present);
  fs.writeFileSync(path.join(migrations, 'former.sql'), installFormer);
  await freeze(project, present, 'former.sql');
  fs.writeFileSync(features, nextCode);
  fs.writeFileSync(path.join(engine, 'structure', '9001_next.sql'), nextStructure);
  await change(engine, 'millrace.live_workers(', (text) => text.replaceAll('p_stage_id', 'p_id_of_the_stage'));
  await change(engine, 'millrace.setting(', (text) => text.replace('returns text', 'returns varchar'));
  await change(engine, 'view millrace.paused as', (text) => {
    const [head = '', ...query] = text.split(/ as$/m);
    return `${head} as select 1 as place, q.* from (${query.join(' as')}) q`;
  });
  const next = nextTarget({ ...project, version: '99.0.0' });
  if (!next?.from) throw new Error('the scratch release is not frozen');
  return {
    level: next.level,
    installFormer,
    upgrade: await upgradeSql(engine, { ...next, from: next.from }),
    installNext: await installSql(engine, next),
    uninstallNext: await uninstallSql(engine),
  };
}

/** Changes the statement that creates what is called so. */
async function change(engine: string, name: string, how: (text: string) => string): Promise<void> {
  const statement = (await sourceStatements(engine)).find(
    ({ kind, text }) => ['CreateFunctionStmt', 'ViewStmt'].includes(kind) && bare(text).split('\n')[0]?.includes(name),
  );
  if (!statement) throw new Error(`nothing is called ${name}`);
  const file = path.join(engine, statement.file);
  // The build writes the word, so the file does not have it.
  const text = statement.text.replace(/^(as \$\w*\$\n)declare\n/m, '$1');
  const [before = '', after] = fs.readFileSync(file, 'utf8').split(text);
  const changed = how(text);
  if (changed === text || after === undefined) throw new Error(`${name} could not be changed`);
  fs.writeFileSync(file, before + changed + after);
}
