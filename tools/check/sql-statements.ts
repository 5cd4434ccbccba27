// The statements of the engine's SQL with their places, as Postgres's own parser reads them.
import fs from 'node:fs';
import path from 'node:path';
import { loadModule, parseSync } from '@libpg-query/parser';
import { hooksSql } from '../engine/engine-sql.ts';

export interface Statement {
  file: string;
  /** Lines of the file, counted from 1, the comments before it left out. */
  from: number;
  to: number;
  text: string;
  /** The comment that stands directly before it, empty when there is none. */
  comment: string;
  kind: string;
  node: Node;
}

/** As much of a parsed statement as is read here. Its parts are named as in Postgres's parsenodes.h. */
export interface Node {
  is_procedure?: boolean;
  replace?: boolean;
  funcname?: Name[];
  parameters?: { FunctionParameter?: { name?: string; argType?: { names?: Name[] }; mode?: string } }[];
  options?: {
    DefElem?: { defname?: string; arg?: { VariableSetStmt?: { name?: string }; [kind: string]: unknown } };
  }[];
  returnType?: { names?: Name[] };
  relation?: { schemaname?: string; relname?: string };
  view?: { schemaname?: string; relname?: string };
  typevar?: { schemaname?: string; relname?: string };
  typeName?: Name[];
  objtype?: string;
  object?: { ObjectWithArgs?: { objname?: Name[] } };
}

interface Name {
  String?: { sval?: string };
}

export interface Finding {
  file: string;
  line: number;
  fault: string;
}

/** Reads the statements of a file. Rejects where Postgres could not parse it. */
export async function statementsOf(root: string, file: string): Promise<Statement[]> {
  await loadModule();
  const bytes = Buffer.from(
    file === 'engine/hooks.sql' ? hooksSql(path.join(root, 'engine')) : fs.readFileSync(path.join(root, file)),
  );
  return (parseSync(bytes.toString()).stmts ?? []).map(({ stmt = {}, stmt_location: at = 0, stmt_len: length = 0 }) => {
    const whole = bytes.subarray(at, length > 0 ? at + length : undefined).toString();
    const [before = ''] = /^(?:\s|--[^\n]*(?:\n|$))*/.exec(whole) ?? [];
    const text = whole.slice(before.length).trimEnd();
    const from = bytes.subarray(0, at).toString().split('\n').length + before.split('\n').length - 1;
    const [comment = ''] = /(?:^|\n)((?:--[^\n]*\n)+)$/.exec(before) ?? [];
    const [kind = '', node = {}] = Object.entries(stmt)[0] ?? [];
    return { file, from, to: from + text.split('\n').length - 1, text, comment: comment.trim(), kind, node };
  });
}

/** Returns the name that Postgres has in parts, joined by dots. */
export function nameOf(parts: Name[] = []): string {
  return parts.map(({ String: { sval = '' } = {} }) => sval).join('.');
}

/** Replaces a part by as many blanks, and keeps its line ends. */
export function blank(part: string): string {
  return part.replaceAll(/[^\n]/g, ' ');
}

/** Returns the files in a folder whose names end so, as paths from the root with forward slashes. */
export function filesIn(root: string, folder: string, ending: string): string[] {
  const whole = path.join(root, folder);
  if (!fs.existsSync(whole)) return [];
  return (fs.readdirSync(whole, { recursive: true }) as string[])
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .map((name) => path.posix.join(folder, ...name.split(path.sep)))
    .sort();
}
