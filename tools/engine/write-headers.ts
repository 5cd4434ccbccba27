// What the build writes of a function's header and rights, so that engine/ holds what people decide.
import { parseSync } from '@libpg-query/parser';
import { isPublic } from '../check/public-surface.ts';
import { commented, grantedOn, identityOf } from './catalogue.ts';
import type { Node, Statement } from './engine-sql.ts';

const searchPath = 'set search_path = pg_catalog, pg_temp';
/** Where a header ends: the line that opens the body. */
const body = /^as \$/m;

const lookUps = [
  'enable_seqscan',
  'enable_indexonlyscan',
  'enable_mergejoin',
  'enable_hashjoin',
  'enable_memoize',
  'jit',
];
/** The planner settings that a header asks for by one name, `set millrace.plan = by_key`. */
const plans: Record<string, string[]> = {
  // Every look-up goes by an index, row by row, and is planned once a connection.
  by_index: [...lookUps.map((name) => `${name} = off`), 'plan_cache_mode = force_generic_plan'],
  // The same without bitmaps, for calls that look up single rows.
  by_key: ['enable_bitmapscan', ...lookUps]
    .map((name) => `${name} = off`)
    .concat('plan_cache_mode = force_generic_plan'),
};
const plan = /^set millrace\.plan = (\w+)$/m;

/**
 * The statements as they are to be run: functions with their whole headers, those of the Data API with their rights, and those that
 * people call with the comment before them as the one that Studio shows.
 */
export function withHeaders(statements: Statement[]): Statement[] {
  const granted = new Set(statements.filter(({ kind }) => kind === 'GrantStmt').flatMap(({ node }) => grantedOn(node)));
  const told = new Set(statements.filter(({ kind }) => kind === 'CommentStmt').map(commented));
  return statements.flatMap((statement) => {
    if (statement.kind !== 'CreateFunctionStmt') return [statement];
    const identity = identityOf(statement.node);
    const rights = identity.startsWith('public.') && !granted.has(identity) ? rightsOf(identity) : [];
    const comment = told.has(`function ${identity}`) ? [] : commentOf(statement, identity);
    return [
      { ...statement, text: wholeHeader(statement) },
      ...rights.map((text) => ({ file: statement.file, kind: 'GrantStmt', node: nodeOf(text), text })),
      ...comment.map((text) => ({ file: statement.file, kind: 'CommentStmt', node: nodeOf(text), text })),
    ];
  });
}

/** What people read of a function that they call: its comment in the file, on one line. */
function commentOf({ node, text }: Statement, identity: string): string[] {
  if (!isPublic(identity.replace(/\(.*/, '')) || node.is_procedure) return [];
  const [comment = ''] = /^(?:--.*\n)*(?=create )/m.exec(text) ?? [];
  const line = comment.replaceAll(/^-- ?/gm, '').trim().replaceAll(/\s+/g, ' ').replaceAll("'", "''");
  return line ? [`comment on function ${identity} is\n  '${line}'`] : [];
}

/** Completes a function's header. A procedure that commits may set nothing there. */
function wholeHeader({ file, text, node }: Statement): string {
  const commits = node.is_procedure && /^\s*commit;$/m.test(text);
  const replacing = text.replace(/^create (?=function|procedure)/m, 'create or replace ');
  const planned = replacing.replace(plan, (_, name: string) => {
    const settings = plans[name];
    if (!settings)
      throw new Error(`engine/${file}: there is no plan ${name}; the build has ${Object.keys(plans).join(', ')}.`);
    return settings.map((setting) => `set ${setting}`).join(' ');
  });
  return commits ? planned : planned.replace(body, (as) => `${searchPath}\n${as}`);
}

/** A function of the Data API is for Edge Functions alone, unless its file says who else may call it. */
const rightsOf = (identity: string) => [
  `revoke all on function ${identity} from public, anon, authenticated`,
  `grant execute on function ${identity} to service_role`,
];

const nodeOf = (text: string): Node => Object.values(parseSync(text).stmts?.[0]?.stmt ?? {})[0];
