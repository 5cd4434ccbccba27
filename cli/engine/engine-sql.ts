// The engine's SQL as people read it, in engine/, and its statements.
import fs from 'node:fs';
import path from 'node:path';
import { loadModule, parseSync } from '@libpg-query/parser';

/** A node of Postgres's own grammar, as its parser tells it. */
// biome-ignore lint/suspicious/noExplicitAny: the grammar has hundreds of shapes, and each reader knows the one it reads.
export type Node = any;

/** One statement of a file, with the comments before it. */
export interface Statement {
  /** Path of the file below engine/. */
  file: string;
  /** The node's name in Postgres's own grammar, such as `CreateFunctionStmt`. */
  kind: string;
  node: Node;
  text: string;
}

/** What binds early waits for what it binds to; the bodies of functions bind late. */
const order = ['CreateFunctionStmt', 'ViewStmt', 'CreateTrigStmt'];

/** The files of `folder` below the engine's, in the order of their names. */
export function sqlFiles(engine: string, folder: string): string[] {
  const names = fs.readdirSync(path.join(engine, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => path.posix.join(folder, name));
}

/** The statements of a file of the engine. Throws with the file's name where Postgres could not parse it. */
export async function statementsOf(engine: string, file: string): Promise<Statement[]> {
  await loadModule();
  const text = fs.readFileSync(path.join(engine, file));
  try {
    return (parseSync(text.toString()).stmts ?? []).map(
      ({ stmt = {}, stmt_location: at = 0, stmt_len: length = 0 }) => ({
        file,
        kind: Object.keys(stmt)[0] ?? '',
        node: Object.values(stmt)[0],
        text: text
          .subarray(at, length > 0 ? at + length : undefined)
          .toString()
          .trim()
          .replace(/;$/, ''),
      }),
    );
  } catch (error) {
    throw new Error(`engine/${file}: ${error instanceof Error ? error.message : error}`);
  }
}

/** All statements of a folder of the engine, in the order of its files. */
export async function statementsIn(engine: string, folder: string): Promise<Statement[]> {
  return (await Promise.all(sqlFiles(engine, folder).map((file) => statementsOf(engine, file)))).flat();
}

/** All statements of engine/code: functions, then views, then triggers, then the rest, each kind in the order of its files. */
export async function codeStatements(engine: string): Promise<Statement[]> {
  const rank = ({ kind }: Statement) => (order.includes(kind) ? order.indexOf(kind) : order.length);
  return (await statementsIn(engine, 'code')).sort((a, b) => rank(a) - rank(b));
}
