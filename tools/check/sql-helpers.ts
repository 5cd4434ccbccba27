// Which helpers of the engine's SQL earn a function of their own.
import fs from 'node:fs';
import path from 'node:path';
import { isPublic } from './public-surface.ts';
import { blank, type Finding, filesIn, type Node, nameOf, type Statement } from './sql-statements.ts';

/** Lines of a body; a helper with fewer and one caller stands where it is used. */
const shortHelper = 10;

/** Finds helpers that would read better where they are used, and those that nobody uses. */
export function helperFaults(root: string, statements: Statement[]): Finding[] {
  const mentioned = mentionsIn(root);
  const callers = new Map<string, string[]>();
  for (const { file, kind, text } of statements) {
    if (kind === 'CommentStmt' || kind === 'GrantStmt') continue;
    const header = kind === 'CreateFunctionStmt' ? /^[^(]*\(/ : /^/;
    const body = withoutComments(text).replace(header, '(');
    for (const [name] of body.matchAll(/\b(?:millrace|millrace_evidence)\.\w+(?=\()/g)) {
      callers.set(name, [...(callers.get(name) ?? []), file]);
    }
  }
  return statements.flatMap(({ file, from: line, kind, node, text }) => {
    const name = nameOf(node.funcname);
    if (kind !== 'CreateFunctionStmt' || isPublic(name) || mentioned(name)) return [];
    // Only built SQL calls these functions.
    if (name.startsWith('pg_temp.')) return [];
    if (nameOf(node.returnType?.names) === 'trigger') return [];
    const [caller, ...others] = callers.get(name) ?? [];
    if (caller === undefined) return [{ file, line, fault: `nothing calls ${name}` }];
    const length = bodyLines(text);
    // A helper of another folder than its caller's stays there: a feature keeps the functions that the kernel calls.
    const isOfOther = path.dirname(caller) !== path.dirname(file);
    if (others.length > 0 || isOfOther || length >= shortHelper || hasSettings(node)) return [];
    return [{ file, line, fault: `${name} has ${length} lines and one caller: write them there` }];
  });
}

/** Returns whether a function has rights or settings of its own, which its caller could not have for a part of its body. */
function hasSettings({ options = [] }: Node): boolean {
  const names = options.map(({ DefElem: { defname, arg } = {} }) => arg?.VariableSetStmt?.name ?? defname);
  return names.some(
    (name) => name === 'security' || (name && /^(enable_|lock_timeout|statement_timeout|jit|plan_)/.test(name)),
  );
}

function bodyLines(text: string): number {
  const [, body = ''] = /\$\w*\$\n([\s\S]*?)\n\s*\$\w*\$$/.exec(text) ?? [];
  // The build writes declare, begin and end around statements, begin in the place of the blank line after declarations.
  const built = body.endsWith(';') && !/^begin$/m.test(body) ? 2 : 0;
  return body.split('\n').length + built;
}

/** Returns whether tests, functions or commands name a function of the engine, outside of the engine's SQL. */
function mentionsIn(root: string): (name: string) => boolean {
  const files = ['tests', 'supabase/functions', 'local', 'cli', 'tools'].flatMap((folder) =>
    filesIn(root, folder, '.ts'),
  );
  const all = files.map((file) => fs.readFileSync(path.join(root, file), 'utf8')).join('\n');
  const names = new Set([...all.matchAll(/\b(?:millrace|millrace_evidence|public)\.\w+/g)].map(([name]) => name));
  return (name) => names.has(name);
}

/** Blanks comments, and keeps lines where they are. */
function withoutComments(text: string): string {
  return text.replaceAll(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?\*\//g, (part) =>
    part.startsWith("'") ? part : blank(part),
  );
}
