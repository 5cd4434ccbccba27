// Each function, command, script, setting and object of the schema millrace that a page names exists.
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { docsFolder } from './page.ts';

const root = path.join(docsFolder, '..');
const read = (file: string) => fs.readFileSync(path.join(root, file), 'utf8');
const below = (folder: string, ending: RegExp) =>
  fs
    .readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file) && !/(^|\/)(node_modules|dist)\//.test(file))
    .map((file) => path.join(folder, file));

/** Pages, and the texts that commands and the engine print. */
const pages = ['README.md', ...below('docs', /\.(md|yml|txt)$/)];
const printed = ['cli', 'pages', 'engine/modules', 'engine/kernel', 'supabase/functions/_millrace'].flatMap((folder) =>
  below(folder, /\.(tsx?|sql|md)$/),
);
const named = (files: string[], name: RegExp) =>
  files.flatMap((file) => [...read(file).matchAll(name)].map(([, found = '']) => `${file}: ${found}`));
const missing = (files: string[], name: RegExp, isThere: (found: string) => boolean) =>
  named(files, name).filter((found) => !isThere(found.replace(/^.*: /, '')));

/** The functions of the project, and of the trial, which brings its own. */
const functions = ['supabase/functions', 'cli/trial/functions'].flatMap((folder) =>
  fs.readdirSync(path.join(root, folder)),
);
const scripts = Object.keys(JSON.parse(read('package.json')).scripts);
/** The engine, and what `npx millrace adopt` adds to it. */
const install = [...below('supabase/migrations', /_millrace\.sql$/), ...below('cli/adopt', /\.sql$/)]
  .map(read)
  .join('\n');

test('each function that is to be deployed, asked or looked at is there', () => {
  const deployed = /functions deploy ([a-z][\w-]*)/g;
  expect(named(pages, deployed).length).toBeGreaterThan(0);
  expect(missing([...pages, ...printed], deployed, (name) => functions.includes(name))).toEqual([]);
  const asked = /functions\/v1\/([a-z][\w-]*)/g;
  expect(missing([...pages, ...printed], asked, (name) => functions.includes(name))).toEqual([]);
  const told = /\b[Ff]unctions? `?([a-z]+(?:-[a-z]+)*)`? (?:does|do) not answer/g;
  expect(missing(pages, told, (name) => functions.includes(name))).toEqual([]);
});

test('each part of the function millrace that a page names is answered by it', () => {
  const routes = read('supabase/functions/_millrace/serve-millrace.ts');
  const part = /(?:functions\/v1\/|`)millrace\/([a-z]+)/g;
  expect(named(pages, part).length).toBeGreaterThan(5);
  expect(missing(pages, part, (name) => new RegExp(`\\b${name}\\b`).test(routes))).toEqual([]);
});

test('each command and each script that a page names is there', () => {
  const commands = [...below('cli/commands', /\.ts$/), ...below('cli/operate', /\.ts$/)].map(read).join('\n');
  // The verbs share one usage, and are named where the entries are.
  const entries = read('cli/operate/entries.ts');
  const isCommand = (name: string) =>
    new RegExp(`^  ${name}: \\{`, 'm').test(entries) || commands.includes(`npx millrace ${name}`);
  // An example of a docstring is called greet.
  const command = /npx millrace (?!greet)([a-z][a-z-]*)/g;
  expect(named(pages, command).length).toBeGreaterThan(50);
  const usages = new Set([...commands.matchAll(/usage:\s*`npx millrace ([a-z-]+)/g)].map(([, name]) => name));
  expect(missing([...pages, ...printed], command, (name) => usages.has(name) || isCommand(name))).toEqual([]);
  expect(missing(pages, /npm run ([a-z:]+)/g, (name) => scripts.includes(name))).toEqual([]);
});

test('each table, view and function of the schema millrace that a page names is there', () => {
  // Settings that the build of the engine reads are no settings of the database.
  const name = /(?<!set )\bmillrace\.([a-z_]+)(?=[\s(`;,)'"]|$)/gm;
  expect(named(pages, name).length).toBeGreaterThan(100);
  const isThere = (found: string) => new RegExp(`\\bmillrace\\.${found}\\b`).test(install);
  expect(missing(pages, name, isThere)).toEqual([]);
});

test('the page of settings lists each that the engine writes for people, and no other', () => {
  const view = /create view millrace\.default_settings as(.*?)\) s\(/s.exec(
    read('engine/modules/set-up/set-up.sql'),
  )?.[1];
  const written = [...(view ?? '').matchAll(/^ {2}\('(\w+)'/gm)].map(([, name]) => name);
  const own = ['last_sweep_at', 'rules_judged_at'];
  const listed = read('docs/settings.md')
    .split('\n')
    .filter((line) => line.startsWith('| `millrace.settings`'))
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(listed.toSorted()).toEqual(written.filter((name) => !own.includes(name ?? '')).toSorted());
});

test('each variable that a page has somebody set is read by something', () => {
  const sources = [...below('supabase/functions', /\.ts$/), ...below('cli', /\.ts$/), ...below('local', /\.ts$/)];
  const all = [...sources.map(read), read('.env.example'), ...below('tests', /\.ts$/).map(read)].join('\n');
  // Deno's own is no one's here.
  const variable = /(?:secrets set |`)(?!DENO_)([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?==|`)/g;
  expect(named(pages, variable).length).toBeGreaterThan(20);
  expect(missing(pages, variable, (name) => new RegExp(`\\b${name}\\b`).test(all))).toEqual([]);
});

test('queries of logs ask the one table that Supabase has, and say what has been tried', () => {
  const page = read('docs/dashboard.md');
  const texts = [...page.matchAll(/^```text\n(.*?)^```/gms)].map(([, text = '']) => text);
  const queries = texts.filter((text) => text.startsWith('-- '));
  expect(queries.length).toBeGreaterThan(2);
  for (const query of [...queries, read('pages/operate/dashboard.ts')]) {
    expect(query).toContain("from logs\nwhere source = 'function_logs'\n");
    expect(query).toMatch(/limit \d+/);
    expect(query).not.toMatch(/regexp_contains|cast\(/);
  }
  expect(page).toMatch(
    /Neither the queries nor the link of\s+the operator's page have been tried on a hosted project\./,
  );
});
