// Objects that the engine's statements make, by name: an upgrade compares them, and an uninstall removes them.
import { createHash } from 'node:crypto';
import type { Node, Statement } from './statement.ts';

/** Objects that one state of the engine's code makes. Texts are kept as digests where they only show a change. */
export interface Code {
  /** By `millrace.claim(…)`, with the types of its arguments. */
  functions: Record<string, FunctionCode>;
  /** In the order in which they are made. */
  views: Record<string, string>;
  /** By `name on table`. */
  triggers: Record<string, string>;
  /** Each `grant` and `revoke` with the functions that it names. */
  grants: Record<string, string[]>;
  /** By `function millrace.claim(…)` and the like. */
  comments: Record<string, string>;
  /** The names of pg_cron's jobs, with those that the engine schedules as it goes: what it calls millrace-…. */
  jobs: string[];
}

export interface FunctionCode {
  /** Names, defaults and result, which `create or replace` keeps. */
  signature: string;
  /** The digest of its text. */
  text: string;
  /** The digest of its body alone, as the database tells it. */
  body: string;
}

/** Objects that the structure makes. */
export interface Made {
  schemas: string[];
  tables: string[];
  /** Composite types: relations to Postgres, as tables are. */
  composites: string[];
  /** Enums and domains. */
  types: string[];
  functions: string[];
}

const argumentModes = ['FUNC_PARAM_DEFAULT', 'FUNC_PARAM_IN', 'FUNC_PARAM_INOUT', 'FUNC_PARAM_VARIADIC'];
const isEngines = (name: string) => /^(millrace\w*\.|public\.millrace_)/.test(name);

export const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32);
const dotted = (names: Node[]) => names.map((name) => name.String.sval).join('.');
/** Returns a trigger as `drop trigger` names it. */
export const triggerName = (node: Node) => `${node.trigname} on ${relationName(node.relation)}`;
const relationName = (relation: Node) => `${relation.schemaname}.${relation.relname}`;

function typeName(type: Node): string {
  const modifiers = (type.typmods ?? []).map((modifier: Node) => JSON.stringify(modifier.A_Const?.ival ?? {}));
  return `${type.setof ? 'setof ' : ''}${dotted(type.names).replace(/^pg_catalog\./, '')}${modifiers.join()}${'[]'.repeat(type.arrayBounds?.length ?? 0)}`;
}

/** Returns a function's name with the types of its arguments, as to_regprocedure() reads it. */
export function identityOf(node: Node): string {
  const types = (node.parameters ?? [])
    .map((parameter: Node) => parameter.FunctionParameter)
    .filter((parameter: Node) => argumentModes.includes(parameter.mode))
    .map((parameter: Node) => typeName(parameter.argType));
  return `${dotted(node.funcname)}(${types.join(', ')})`;
}

/** Returns the parts of a function that `create or replace` cannot change. */
function signatureOf(node: Node): string {
  const parameters = (node.parameters ?? []).map(({ FunctionParameter: p }: Node) =>
    [p.mode.replace('FUNC_PARAM_', ''), p.name, typeName(p.argType), p.defexpr ? 'default' : ''].join(' ').trim(),
  );
  return `(${parameters.join(', ')}) returns ${node.returnType ? typeName(node.returnType) : 'nothing'}`;
}

/** Returns the digest of a function's body, as `left(md5(prosrc), 12)` does in the database. */
function bodyDigest(text: string): string {
  const [, , body = ''] = /\bas\s+(\$\w*\$)([\s\S]*)\1/.exec(text) ?? [];
  return createHash('md5').update(body).digest('hex').slice(0, 12);
}

/** Returns the function that a statement names with its arguments. */
function named({ ObjectWithArgs: { objname, objargs = [] } }: Node): string {
  return `${dotted(objname)}(${objargs.map((type: Node) => typeName(type.TypeName)).join(', ')})`;
}

/** Returns the functions that a `grant` or `revoke` names. */
export const grantedOn = (node: Node): string[] =>
  (node.objects ?? []).filter(({ ObjectWithArgs: f }: Node) => f && !f.args_unspecified).map(named);

/** Returns the object that `comment on` names. */
export function commented({ node, text }: Statement): string {
  if (node.objtype === 'OBJECT_FUNCTION') return `function ${named(node.object)}`;
  return (/^comment on ([\s\S]*?) is\s/m.exec(text)?.[1] ?? '').replace(/\s+/g, ' ');
}

/** Returns a statement without the comments before it. */
export const bare = (text: string) => text.replace(/^(\s*--[^\n]*\n)+/, '').trim();

/** Returns the objects that the statements of the code make. */
export function codeOf(statements: Statement[]): Code {
  const of = (kind: string) => statements.filter((statement) => statement.kind === kind);
  const jobs = statements.flatMap(({ text }) => [...text.matchAll(/'(millrace-[a-z][a-z-]*)'/g)]);
  return {
    functions: Object.fromEntries(
      of('CreateFunctionStmt').map(({ node, text }) => [
        identityOf(node),
        {
          signature: signatureOf(node),
          text: digest(bare(text)),
          body: bodyDigest(text),
        },
      ]),
    ),
    views: Object.fromEntries(of('ViewStmt').map(({ node, text }) => [relationName(node.view), digest(bare(text))])),
    triggers: Object.fromEntries(of('CreateTrigStmt').map(({ node, text }) => [triggerName(node), digest(bare(text))])),
    grants: Object.fromEntries(
      of('GrantStmt').map(({ node, text }) => [bare(text).replace(/\s+/g, ' '), grantedOn(node)]),
    ),
    comments: Object.fromEntries(
      of('CommentStmt').map((statement) => [commented(statement), digest(bare(statement.text))]),
    ),
    jobs: [...new Set(jobs.map(([, name = '']) => name))],
  };
}

/** Returns the objects that the statements of engine/structure make, under all names that they have had. */
export function madeBy(statements: Statement[]): Made {
  const of = (kind: string) => statements.filter((statement) => statement.kind === kind).map(({ node }) => node);
  const renamed = of('RenameStmt')
    .filter(({ renameType }) => renameType === 'OBJECT_TABLE')
    .map(({ relation, newname }) => `${relation.schemaname}.${newname}`);
  return {
    schemas: of('CreateSchemaStmt').map(({ schemaname }) => schemaname),
    tables: [...of('CreateStmt').map(({ relation }) => relationName(relation)), ...renamed],
    composites: of('CompositeTypeStmt').map(({ typevar }) => relationName(typevar)),
    types: [
      ...of('CreateEnumStmt').map((node) => dotted(node.typeName)),
      ...of('CreateDomainStmt').map((node) => dotted(node.domainname)),
    ],
    functions: of('CreateFunctionStmt').map(identityOf),
  };
}

/** Returns the tables that statements of the structure alter, which takes a lock that keeps even readers out. */
export function alteredTables(statements: Statement[]): string[] {
  const names = statements.flatMap(({ kind, node }) => {
    if (kind === 'DropStmt') return (node.objects ?? []).map((object: Node) => dotted(object.List?.items ?? []));
    const relation = node.relation;
    return relation?.schemaname && kind !== 'CreateStmt' ? [relationName(relation)] : [];
  });
  return [...new Set<string>(names)].filter(isEngines);
}
