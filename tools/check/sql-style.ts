// The style of SQL, the engine's and the examples': its width, the lengths of its functions, and what is said about them where.
import fs from 'node:fs';
import path from 'node:path';
import { isPublic } from './public-surface.ts';
import { helperFaults } from './sql-helpers.ts';
import { blank, type Finding, filesIn, type Node, nameOf, type Statement, statementsOf } from './sql-statements.ts';

const widest = 100;
const longestFunction = 60;
/** The bound of a function in which no branch or loop stands within another, so that it reads from top to bottom. */
const longestStraight = 100;
const branchesTwice = /^ {3,}end (?:if|loop|case);$/m;
/** A body whose statements stand at the margin, after its declarations and a blank line. */
const atMargin = /^as \$\w*\$\n(?:(?:declare\n)?(?: .*\n)+\n|(?!(?:declare|begin)\n|#))(?=[a-z-])/m;
const branchesTwiceAtMargin = /^ +end (?:if|loop|case);$/m;
/** Branches and loops of a function over sixty lines: with more of them nobody keeps its cases apart. */
const mostBranches = 8;
const branches = /^ *(?:(?:if|elsif|while|foreach)\b|for\b(?! (?:no key )?(?:update|share)| key share))/gm;
/** Functions that may have more branches until they are split: the kernel's way into a stage. */
const stillBranching = ['millrace.queue_stage'];
const isIndented = /^as (\$\w*\$)\n(?: {2}.*\n|\n)+\1/m;
/** A statement this short may stand on one line with all its clauses. */
const shortStatement = 90;
/** The most fields of a row that may be filled by position alone. */
const mostPlaces = 5;
/** A column, by the one letter of its table, an operator, and a call of the engine's with what it is given. */
const comparedWithCall =
  /\b[a-z]\.\w+\)*\s+(?:[<>]=?|<>|=|@>|<@|&&|between)\s+(?:any \()?((?:millrace|public)\.\w+)\(([^()]*)/g;
const searchPath = 'pg_catalog, pg_temp';
/** A block of its own around statements. Within a text of more lines the margin may be a part of the text. */
const isBlock =
  /^as (\$\w*\$)\n(?:declare\n)?(?: .*\n)*begin\n(?:(?: {2}.*)?\n)+(?:(?:--.*\n)*exception.*\n(?: .*\n)+)?end\n\1/m;
/** The word before the declarations of a body. */
const saysDeclare = /^as \$\w*\$\ndeclare$/m;
const declaresNow = /^ +v_now timestamptz := millrace\.now\(\);$/m;
/** The SQL of which the build completes the functions' headers. */
const hasBuiltHeaders = /^engine\/(?:kernel\/|modules\/|hooks\.sql$)/;

/** Files of engine/ that a program writes, in a style of its own. */
const generated = ['engine/uninstall.sql'];

/** Migrations that a program writes: the engine's, and those of pipelines. */
const generatedMigration = /_(?:millrace(?:_\d[\d.]*)?|pipeline_\w+|(?:shared|dropped)_limits)\.sql$/;
/** The first migration that keeps to the style: leads, books and documents, before it, are wider. */
const firstStyledMigration = '20261101005000';

/** Looks at the SQL of engine/, of cli/ and of the examples below `root`. Resolves to a line for each fault, empty when there is none. */
export async function checkSqlStyle(root: string, ignored = generated): Promise<string> {
  const engine = [...filesIn(root, 'engine', '.sql'), ...filesIn(root, 'cli', '.sql')];
  const examples = exampleMigrations(root);
  const statements = await statementsIn(root, engine);
  const findings = [
    ...[...engine, ...examples].flatMap((file) => lineFaults(root, file)),
    ...[...statements, ...(await statementsIn(root, examples))].flatMap(statementFaults),
    ...statements.flatMap(surfaceFaults),
    ...statements.flatMap(aggregateFaults),
    ...volatileFaults(statements),
    ...helperFaults(root, statements),
  ];
  return findings
    .filter(({ file }) => !ignored.includes(file))
    .sort((one, other) => one.file.localeCompare(other.file) || one.line - other.line)
    .map(({ file, line, fault }) => `${file}:${line}: ${fault}`)
    .join('\n');
}

/** Returns the migrations of the examples that people write. */
function exampleMigrations(root: string): string[] {
  return filesIn(root, 'supabase/migrations', '.sql').filter(
    (file) => path.basename(file) >= firstStyledMigration && !generatedMigration.test(file),
  );
}

async function statementsIn(root: string, files: string[]): Promise<Statement[]> {
  return (await Promise.all(files.map((file) => statementsOf(root, file)))).flat();
}

function lineFaults(root: string, file: string): Finding[] {
  const text = fs.readFileSync(path.join(root, file), 'utf8');
  const bare = withoutCommentsAndStrings(text).split('\n');
  return text.split('\n').flatMap((shown, at) => {
    const line = bare[at] ?? '';
    const faults: string[] = [];
    if ([...shown].length > widest) faults.push(`${[...shown].length} columns, at most ${widest}`);
    const upper = /[A-Z]\w*/.exec(line.replaceAll(/%(?:\d+\$)?[ILs]/g, ''));
    if (upper) faults.push(`${upper[0]} is not in lower case`);
    const clauses = line
      .replaceAll(/\bdistinct from\b|\b(?:extract|substring)\s*\([^)]*\)/g, '')
      .match(/\b(?:from|where|join|group by|having)\b/g);
    if (line.trim().length > shortStatement && (clauses?.length ?? 0) > 1)
      faults.push(`${clauses?.join(' and ')} on one line of more than ${shortStatement} columns`);
    return faults.map((fault) => ({ file, line: at + 1, fault }));
  });
}

/** Finds rows that are filled by position, but for those of constructors: functions that return such a row. */
function rowFaults({ file, from, text, node }: Statement): Finding[] {
  const bare = withoutCommentsAndStrings(text);
  const returned = nameOf(node.returnType?.names);
  return [...bare.matchAll(/\brow\(/g)].flatMap(({ index, 0: opening }) => {
    const { fields, end } = fieldsAfter(bare, index + opening.length);
    const named = returned && bare.startsWith(`::${returned}`, end);
    if (fields <= mostPlaces || named) return [];
    const line = from + bare.slice(0, index).split('\n').length - 1;
    return [{ file, line, fault: `${fields} fields by position, at most ${mostPlaces}: name them in a constructor` }];
  });
}

/** Finds columns that are compared with what a volatile function returns: it is called for each row, and bounds no index. */
function volatileFaults(statements: Statement[]): Finding[] {
  const fixed = new Set(
    statements
      .filter(({ node }) => JSON.stringify(node.options ?? []).match(/"sval":"(?:stable|immutable)"/))
      .map(({ node }) => nameOf(node.funcname)),
  );
  return statements.flatMap(({ file, from, text }) =>
    [...withoutComments(text).matchAll(comparedWithCall)].flatMap(({ index, 1: name = '', 2: given = '' }) => {
      if (fixed.has(name) || /\b[a-z]\.\w/.test(given)) return [];
      const line = from + text.slice(0, index).split('\n').length - 1;
      return [{ file, line, fault: `a column is compared with ${name}(), called for each row: (select ${name}())` }];
    }),
  );
}

/** Finds aggregates of jsonb, also in SQL that is built as text, which take quadratic time in the keys of one object: 17 s for ten results, one with 30,000 keys. */
function aggregateFaults({ file, from, text }: Statement): Finding[] {
  return [...withoutComments(text).matchAll(/\bjsonb_((?:object_)?agg)\(/g)].map(({ index, 1: name }) => ({
    file,
    line: from + text.slice(0, index).split('\n').length - 1,
    fault: `jsonb_${name} takes quadratic time in the keys of an object: json_${name}(…)::jsonb`,
  }));
}

/** Counts the fields from `from`, right after an opening bracket, to the `end` right after the bracket that closes it. */
function fieldsAfter(text: string, from: number): { fields: number; end: number } {
  let depth = 1;
  let fields = 1;
  let end = from;
  for (; end < text.length && depth > 0; end += 1) {
    if (text[end] === '(' || text[end] === '[') depth += 1;
    if (text[end] === ')' || text[end] === ']') depth -= 1;
    if (text[end] === ',' && depth === 1) fields += 1;
  }
  return { fields, end };
}

function statementFaults(statement: Statement): Finding[] {
  const { file, from: line, kind } = statement;
  const faults = kind === 'CreateFunctionStmt' ? functionFaults(statement) : [];
  if (lacksSchema(statement)) faults.push('what it makes has no schema before its name');
  return [...faults.map((fault) => ({ file, line, fault })), ...rowFaults(statement)];
}

/** Finds stored comments about what people do not call. */
function surfaceFaults({ file, from: line, kind, node }: Statement): Finding[] {
  return kind === 'CommentStmt' ? commentFaults(node).map((fault) => ({ file, line, fault })) : [];
}

function functionFaults({ file, node, from, to, comment, text }: Statement): string[] {
  const name = nameOf(node.funcname);
  const faults: string[] = [];
  const nested = atMargin.test(text) ? branchesTwiceAtMargin : branchesTwice;
  const longest = nested.test(text) ? longestFunction : longestStraight;
  if (to - from + 1 > longest) faults.push(`${name} has ${to - from + 1} lines, at most ${longest}`);
  const count = text.match(branches)?.length ?? 0;
  if (to - from + 1 > longestFunction && count > mostBranches && !stillBranching.includes(name))
    faults.push(`${name} has more than ${longestFunction} lines and ${count} branches, at most ${mostBranches}`);
  if (!comment && !isPublic(name)) faults.push(`${name} has no comment directly before it`);
  // Postgres lets no procedure commit that sets anything in its header.
  const commits = node.is_procedure && /^\s*commit;$/m.test(text);
  if (hasBuiltHeaders.test(file)) {
    if (setsSearchPath(node)) faults.push(`${name} sets search_path, which the build does`);
    if (node.replace) faults.push(`${name} says "or replace", which the build does`);
    if (saysLanguage(node)) faults.push(`${name} says its language, which the build does`);
    if (isIndented.test(text)) faults.push(`${name} indents a body that declares nothing, which the build does`);
    if (isBlock.test(text)) faults.push(`${name} says begin and end, which the build does`);
    if (/ returns trigger\nsecurity definer$/m.test(text)) faults.push(`${name} says its rights, which the build does`);
    if (saysDeclare.test(text)) faults.push(`${name} says declare, which the build does`);
    if (declaresNow.test(text)) faults.push(`${name} declares v_now, which the build does`);
    const returns = /^public\./.test(name) ? 'jsonb' : 'void';
    if (nameOf(node.returnType?.names).replace(/^.*\./, '') === returns)
      faults.push(`${name} returns ${returns}, which the build says`);
  } else if (!commits && !setsSearchPath(node)) {
    faults.push(`${name} does not set search_path = ${searchPath}`);
  }
  const records = (node.parameters ?? []).filter(
    ({ FunctionParameter: { mode = '', argType } = {} }) =>
      !/OUT|TABLE/.test(mode) && nameOf(argType?.names).replace(/^.*\./, '') === 'record',
  );
  for (const { FunctionParameter: { name: parameter } = {} } of records) {
    faults.push(`the parameter ${parameter} of ${name} is of type record: name its fields`);
  }
  return faults;
}

function saysLanguage({ options = [] }: Node): boolean {
  return options.some(({ DefElem }) => DefElem?.defname === 'language');
}

function setsSearchPath({ options = [] }: Node): boolean {
  const set = options.find(({ DefElem }) => DefElem?.arg?.VariableSetStmt?.name === 'search_path');
  const values = [...JSON.stringify(set ?? {}).matchAll(/"sval":"([^"]*)"/g)].map(([, value]) => value);
  return values.join(', ') === searchPath;
}

function commentFaults({ objtype, object }: Node): string[] {
  if (objtype === 'OBJECT_TYPE') return ['a type is explained in a comment before it'];
  const name = nameOf(object?.ObjectWithArgs?.objname);
  if (objtype !== 'OBJECT_FUNCTION' || isPublic(name)) return [];
  return [`${name} is not called by people: say it in the comment before the function`];
}

/** Returns whether a statement creates something and leaves its schema to the session. */
function lacksSchema({ kind, node }: Statement): boolean {
  if (kind === 'CreateFunctionStmt') return (node.funcname?.length ?? 0) < 2;
  if (kind === 'CreateEnumStmt') return (node.typeName?.length ?? 0) < 2;
  if (!/^(Create|View|Index|CompositeType|AlterTable)/.test(kind)) return false;
  const made = node.relation ?? node.view ?? node.typevar;
  return made !== undefined && made.schemaname === undefined;
}

function withoutCommentsAndStrings(text: string): string {
  return text.replaceAll(/\b[eE]?'(?:[^']|'')*'|'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\/\*[\s\S]*?\*\//g, blank);
}

function withoutComments(text: string): string {
  return text.replaceAll(/--[^\n]*/g, blank);
}
