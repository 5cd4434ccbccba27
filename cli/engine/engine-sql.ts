// The engine's SQL as people read it, in engine/, and the text of an install that is built of it.
import fs from 'node:fs';
import path from 'node:path';
import { loadModule, parseSync } from 'libpg-query';

/** One statement of a file, with the comments before it. */
export interface Statement {
  /** Path of the file below engine/. */
  file: string;
  /** The node's name in Postgres's own grammar, such as `CreateFunctionStmt`. */
  kind: string;
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

/** All statements of engine/code: functions, then views, then triggers, then the rest, each kind in the order of its files. */
export async function codeStatements(engine: string): Promise<Statement[]> {
  const files = sqlFiles(engine, 'code');
  const all = (await Promise.all(files.map((file) => statementsOf(engine, file)))).flat();
  const rank = ({ kind }: Statement) => (order.includes(kind) ? order.indexOf(kind) : order.length);
  return all.sort((a, b) => rank(a) - rank(b));
}

/** The text that installs the engine in a database that has none: the structure, file by file, and the code. */
export async function installSql(engine: string): Promise<string> {
  const structure = sqlFiles(engine, 'structure').map((file) =>
    fs.readFileSync(path.join(engine, file), 'utf8').trim(),
  );
  const code = (await codeStatements(engine)).map(({ text }) => `${text};`);
  return [
    '-- Millrace, built from engine/ by `npm run check -- --write`. Change it there.',
    ...structure,
    '-- Bodies may name what a later statement makes.\nset check_function_bodies = off;',
    ...code,
    'reset check_function_bodies;',
    '',
  ].join('\n\n');
}
