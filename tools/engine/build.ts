// Builds the SQL of engine/: the migration that installs it, the upgrade of the release before, and the script that
// removes it.
import fs from 'node:fs';
import path from 'node:path';
import {
  alteredTables,
  bare,
  type Code,
  codeOf,
  commented,
  digest,
  identityOf,
  madeBy,
  triggerName,
} from './catalogue.ts';
import { codeStatements, sqlFiles, statementsIn } from './engine-sql.ts';
import type { Release, Target } from './release.ts';
import type { Statement } from './statement.ts';
import { withStoredComments } from './store-comments.ts';
import { coded, indented } from './write-headers.ts';

const heading =
  '-- Millrace, built of engine/ by tools/build.ts: there are its comments, in the files named here. Change it there.';
/** Lets the bodies of functions name objects that a later statement creates. */
const bodiesLater = 'set check_function_bodies = off;';
/** The text of millrace.engine() before the build writes level and release into it. */
const unwritten = /level := 0;\s+release := '0\.0\.0';/;

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;
const literal = (value: string | number | string[]) =>
  Array.isArray(value) ? `array[${wrapped(value.map(quote))}]::text[]` : String(value);
const join = (parts: string[]) => `${parts.filter(Boolean).join('\n\n')}\n`;
/** Removes lines of comment: a fifth of the text that a new project's database would get. */
const withoutComments = (text: string) =>
  text
    .replaceAll(/^ *--[^\n]*\n/gm, '')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();

/** Returns a list in lines of at most 100 columns, on one where it is short. */
function wrapped(items: string[]): string {
  if (items.join(', ').length < 40) return items.join(', ');
  const lines = [''];
  for (const item of items) {
    const line = lines.at(-1) ?? '';
    if (line && line.length + item.length > 88) lines.push(`${item}, `);
    else lines[lines.length - 1] = `${line}${item}, `;
  }
  return `\n${lines
    .map((line) => `      ${line.trim()}`)
    .join('\n')
    .replace(/,$/, '')}\n    `;
}

/** A block or a function of engine/install as people write it: its declarations, a blank line, and statements at the margin. */
const block = /^(do|as) (\$\w*\$)\n(?:((?: {2}.*\n)+)\n)?([\s\S]*?)\n\2;$/gm;

/** Returns a file of engine/install with whole blocks, and with the values for what it calls '{{name}}'. */
function template(engine: string, name: string, values: Record<string, string | number | string[]>): string {
  const text = withoutComments(
    fs
      .readFileSync(path.join(engine, 'install', name), 'utf8')
      .replace(
        block,
        (_, word: string, quote: string, declared: string | undefined, statements: string) =>
          `${word === 'as' ? 'language plpgsql\n' : ''}${word} ${quote}\n${declared ? `declare\n${declared}` : ''}` +
          `begin\n${indented(statements)}\nend\n${quote};`,
      )
      .replaceAll(coded, "$1$3errcode = '$2', "),
  );
  return text.replace(/'\{\{(\w+)\}\}'(::text\[\])?/g, (_, key: string) => {
    const value = values[key];
    if (value === undefined) throw new Error(`engine/install/${name} asks for ${key}, which the build does not know.`);
    return literal(value);
  });
}

const structureFiles = (engine: string, isWanted: (file: string) => boolean = () => true) =>
  sqlFiles(engine, 'structure')
    .filter(isWanted)
    .map((file) => [file, withStoredComments(fs.readFileSync(path.join(engine, file), 'utf8'))])
    .map(([file, text = '']) => `-- ${file}\n\n${withoutComments(text)}`);

/** Resolves to the code with level and release written into millrace.engine(). */
export async function codeFor(engine: string, { level, version }: Target): Promise<Statement[]> {
  const statements = await codeStatements(engine);
  if (statements.filter(({ text }) => unwritten.test(text)).length !== 1) {
    throw new Error("millrace.engine() must say level := 0; release := '0.0.0'; for the build to write them.");
  }
  return statements.map((statement) => ({
    ...statement,
    text: withoutComments(statement.text.replace(unwritten, `level := ${level};\n  release := ${quote(version)};`)),
  }));
}

/** Statements of the code, with the name of a file before its first of each kind. */
const byFile = (statements: Statement[]) =>
  statements.map(({ file, text }, at) => `${statements[at - 1]?.file === file ? '' : `-- ${file}\n\n`}${text};`);

/** The rows and cron jobs, which need all that goes before. */
const setUp = 'select millrace.set_up();';

/** Resolves to the text that installs the engine in a database that has none: the structure, file by file, and the code. */
export async function installSql(engine: string, target: Target): Promise<string> {
  const { schemas } = madeBy(await statementsIn(engine, 'structure'));
  return join([
    heading,
    template(engine, 'preflight.sql', { schemas }),
    ...structureFiles(engine),
    bodiesLater,
    ...byFile(await codeFor(engine, target)).map((text) => text.replace(/^create or replace /m, 'create ')),
    'reset check_function_bodies;',
    setUp,
  ]);
}

/** Resolves to the text that brings a database from the release before to this one. */
export async function upgradeSql(engine: string, target: Target & { from: Release }): Promise<string> {
  const { from, level, version } = target;
  const isNew = (file: string) => !(file in from.structure);
  const structure = await statementsIn(engine, 'structure');
  const added = structure.filter(({ file }) => isNew(file));
  const code = await codeFor(engine, target);
  const now = codeOf(code);
  const removed = removals(from.code, now);
  const altered = [...alteredTables(added), ...triggersChanged(from.code, now)];
  const changed = Object.keys(from.code.functions).filter(
    (name) => from.code.functions[name]?.text !== now.functions[name]?.text,
  );
  const tables = madeBy(structure).tables.filter((name) => name.startsWith('public.'));
  return join([
    heading,
    `-- From level ${from.level} (release ${from.version}) to level ${level} (release ${version}).`,
    template(engine, 'begin-upgrade.sql', {
      from: from.level,
      to: level,
      altered,
      tables,
      changed,
      bodies: Object.entries(from.code.functions).map(([name, { body }]) => `${body} ${name}`),
    }),
    ...structureFiles(engine, isNew),
    bodiesLater,
    ...removed,
    ...code.flatMap((statement) => replacing(statement, from.code, now)),
    ...revoked(from.code, now),
    template(engine, 'end-upgrade.sql', { functions: functionsOf(structure, now) }),
    'reset check_function_bodies;',
    setUp,
  ]);
}

/** Resolves to the statement that removes the engine with all that it made. */
export async function uninstallSql(engine: string): Promise<string> {
  const structure = await statementsIn(engine, 'structure');
  const statements = await codeStatements(engine);
  const code = codeOf(statements);
  const { schemas, tables, composites, types } = madeBy(structure);
  return join([
    template(engine, 'uninstall.sql', {
      schemas,
      types,
      functions: functionsOf(structure, code),
      relations: [...tables, ...composites, ...Object.keys(code.views)],
      tables: tables.filter((name) => name.startsWith('public.')),
      jobs: code.jobs,
    }),
  ]);
}

const functionsOf = (structure: Statement[], code: Code) => [
  ...madeBy(structure).functions,
  ...Object.keys(code.functions),
];

/** Returns the tables whose triggers go or may have to be dropped first, which keeps even readers out. */
function triggersChanged(was: Code, now: Code): string[] {
  const names = Object.keys(was.triggers).filter((name) => was.triggers[name] !== now.triggers[name]);
  return [...new Set(names.map((name) => name.split(' on ')[1] ?? ''))];
}

/** Returns whether a function stays where it is, with its rights and its comment, and takes a new text at most. */
const isKept = (name: string, was: Code, now: Code) =>
  was.functions[name] !== undefined && was.functions[name]?.signature === now.functions[name]?.signature;

/**
 * Returns the drops before the code is written anew: of objects that the source lacks, and of functions with a new
 * signature.
 */
function removals(was: Code, now: Code): string[] {
  const gone = Object.keys(was.functions).filter((name) => !isKept(name, was, now));
  const views = Object.keys(was.views).filter((name) => !(name in now.views));
  const triggers = Object.keys(was.triggers).filter((name) => !(name in now.triggers));
  const jobs = was.jobs.filter((name) => !now.jobs.includes(name));
  const own = gone.length + views.length > 0;
  return [
    ...triggers.map((name) => `drop trigger if exists ${name};`),
    own ? `select pg_temp.drop_own(${literal(gone)}, ${literal(views)});` : '',
    ...jobs.map((name) => `select cron.unschedule(j.jobname) from cron.job j where j.jobname = ${quote(name)};`),
  ];
}

/** Whether the release before has left nothing for a statement about a function to do. Rights are told anew, in their order. */
function isDone(statement: Statement, was: Code, now: Code): boolean {
  const { kind, node, text } = statement;
  if (kind === 'CreateFunctionStmt') {
    const name = identityOf(node);
    return isKept(name, was, now) && was.functions[name]?.text === now.functions[name]?.text;
  }
  if (kind !== 'CommentStmt') return false;
  const name = commented(statement);
  return was.comments[name] === digest(bare(text)) && isKept(name.replace(/^function /, ''), was, now);
}

/** Returns a statement of the code, such that it can be run where an earlier one has been; none where that has done all. */
function replacing(statement: Statement, was: Code, now: Code): string[] {
  const { kind, node, text } = statement;
  if (isDone(statement, was, now)) return [];
  if (kind === 'ViewStmt') {
    const name = `${node.view.schemaname}.${node.view.relname}`;
    const isChanged = was.views[name] !== digest(bare(text));
    return [`select pg_temp.put_view(${quote(name)}, ${isChanged}, $view$\n${text}\n$view$);`];
  }
  if (kind === 'CreateTrigStmt') {
    if (was.triggers[triggerName(node)] === digest(bare(text))) return [];
    // A constraint trigger cannot be replaced.
    if (node.isconstraint) return [`drop trigger if exists ${triggerName(node)};`, `${text};`];
    return [`${text.replace(/^create trigger /m, 'create or replace trigger ')};`];
  }
  return [`${text};`];
}

/** Revokes rights and removes comments that the source no longer gives to objects that stay. */
function revoked(was: Code, now: Code): string[] {
  const grants = Object.entries(was.grants)
    .filter(([grant, functions]) => !(grant in now.grants) && functions.every((name) => name in now.functions))
    .map(([grant]) => grant)
    .filter((grant) => grant.startsWith('grant '));
  const comments = Object.keys(was.comments).filter((name) => {
    const [, kind, object = ''] = /^(function|view) (.*)$/.exec(name) ?? [];
    const isThere = kind === 'function' ? object in now.functions : kind !== 'view' || object in now.views;
    return isThere && !(name in now.comments);
  });
  return [
    ...grants.map((grant) => `${grant.replace(/^grant /, 'revoke ').replace(/ to (?=[^)]*$)/, ' from ')};`),
    ...comments.map((name) => `comment on ${name} is null;`),
  ];
}
