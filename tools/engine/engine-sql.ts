// The engine's SQL as people read it, in engine/, and its statements.
import fs from 'node:fs';
import path from 'node:path';
import { loadModule, parseSync } from '@libpg-query/parser';
import { sharedLimitSchema } from './shared-limit-schema.ts';
import type { Statement } from './statement.ts';
import { withHeaders } from './write-headers.ts';

/**
 * Order of kinds: views and triggers bind early and follow the functions that they name; the bodies of functions bind
 * late.
 */
const order = ['CreateFunctionStmt', 'ViewStmt', 'CreateTrigStmt'];

/** Returns the files of `folder` below the engine's, in the order of their names. */
export function sqlFiles(engine: string, folder: string): string[] {
  const names = fs.readdirSync(path.join(engine, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => path.posix.join(folder, name));
}

/** Returns the engine's modules from the lowest up: each may stand on those before it. */
export function modulesOf(engine: string): string[] {
  return JSON.parse(fs.readFileSync(path.join(engine, 'modules.json'), 'utf8'));
}

/** Where the statements of a file start that modules have the kernel run at a moment: `-- on completed`. */
const section = /^-- on (\w+)\n/m;
/** Where a hook of `hooks.sql` runs what the modules have for it. */
const place = /^( *)-- the modules' (\w+)$/gm;

/** A hook without a body, which has nothing but what the modules have for it. */
const bodiless = /^create function millrace\.hook_(\w+)\((?:[^()]|\([^()]*\))*\)(?:(?!as \$)[^;])*;$/gm;

/** Returns the text of `hooks.sql`, in which each module's statements stand at their place, in the order of the modules. */
export function hooksSql(engine: string): string {
  const parts = modulesOf(engine).flatMap((name) => hookParts(path.join(engine, 'modules', name, 'hooks.plpgsql')));
  const text = fs
    .readFileSync(path.join(engine, 'hooks.sql'), 'utf8')
    .replaceAll(bodiless, (head, hook) => `${head.slice(0, -1)}\nas $$\n-- the modules' ${hook}\n$$;`);
  const places = [...text.matchAll(place)].map(([, , hook]) => hook);
  const lost = parts.find(({ hook }) => !places.includes(hook));
  if (lost) throw new Error(`${lost.file}: engine/hooks.sql has no place for "${lost.hook}".`);
  return text.replaceAll(place, (_, indent: string, hook: string) =>
    parts
      .filter((part) => part.hook === hook)
      .flatMap(({ lines }) => lines.map((line) => (line ? indent + line : line)))
      .join('\n'),
  );
}

/** Returns the part of a module's file for each hook. */
function hookParts(file: string): { file: string; hook: string; lines: string[] }[] {
  if (!fs.existsSync(file)) return [];
  const [, ...parts] = fs.readFileSync(file, 'utf8').split(section);
  return parts.flatMap((hook, at) =>
    at % 2 ? [] : [{ file, hook, lines: (parts[at + 1] ?? '').replaceAll(/^\n+|\s+$/g, '').split('\n') }],
  );
}

/** Declarations at the beginning of a body, which stand indented there. */
const declarations = /^(as \$\w*\$\n)(?=(?: {2}--.*\n)* {2}[vc]_\w+ )/gm;

/** Returns the text of a file of the engine as it is to be installed. */
export function textOf(engine: string, file: string): string {
  const source = file === 'hooks.sql' ? hooksSql(engine) : fs.readFileSync(path.join(engine, file), 'utf8');
  const text = source.replaceAll(declarations, '$1declare\n');
  return text.replace("'the schema of shared limits'", () => sharedLimitSchema());
}

/** Resolves to the statements of a file of the engine. Throws with the file's name where Postgres could not parse it. */
export async function statementsOf(engine: string, file: string): Promise<Statement[]> {
  await loadModule();
  const text = Buffer.from(textOf(engine, file));
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

/** Resolves to all statements of a folder of the engine, in the order of its files. */
export async function statementsIn(engine: string, folder: string): Promise<Statement[]> {
  return (await Promise.all(sqlFiles(engine, folder).map((file) => statementsOf(engine, file)))).flat();
}

/** Returns the files of the code: the kernel's, the hooks, and those of the modules in their order. */
export function codeFiles(engine: string): string[] {
  return [
    ...sqlFiles(engine, 'kernel'),
    'hooks.sql',
    ...modulesOf(engine).flatMap((name) => sqlFiles(engine, `modules/${name}`)),
  ];
}

/** Resolves to the statements of the code as people write them, in the order of its files. */
export async function sourceStatements(engine: string): Promise<Statement[]> {
  return (await Promise.all(codeFiles(engine).map((file) => statementsOf(engine, file)))).flat();
}

/** All statements of the code as they are to be run: functions, then views, then triggers, then the rest, each kind in the order of its files. */
export async function codeStatements(engine: string): Promise<Statement[]> {
  const rank = ({ kind }: Statement) => (order.includes(kind) ? order.indexOf(kind) : order.length);
  return withHeaders(await sourceStatements(engine)).sort((a, b) => rank(a) - rank(b));
}
