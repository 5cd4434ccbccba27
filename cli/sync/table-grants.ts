// Finds grants of the migrations on whole entity tables: a role with such a grant may write the engine's columns too.
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';

/** Roles that hold the keys of the project anyway. */
const trusted = ['service_role', 'postgres'];
const grant = /^(grant|revoke)\s+(.+?)\s+on\s+(?:table\s+)?(.+?)\s+(?:to|from)\s+(.+)$/is;

/**
 * A sentence, with the statements that help, for each role that may insert or update all columns of a pipeline's
 * table, by the migrations' texts, given in order. Looks at pipelines that project their stages into columns.
 * Migrations do not show a project's default grants: `millrace.doctor()` checks those.
 */
export function grantFaults(pipelines: CompiledPipeline[], migrations: string[]): string[] {
  const shown = pipelines.filter(({ entity }) => entity.projection === 'columns');
  const statements = migrations.flatMap(statementsOf);
  return [...new Set(shown.map(({ entity }) => entity.table))].flatMap((table) => {
    const over = shown.filter(({ entity }) => entity.table === table);
    return [...wholeTableGrants(table, statements)].map(([role, rights]) => sentence(table, role, [...rights], over));
  });
}

function sentence(table: string, role: string, rights: string[], over: CompiledPipeline[]): string {
  const result = `${over[0]?.stages[0]?.name}_result`;
  const startable = over.filter(({ entity }) => entity.startable_by?.includes(role));
  const statuses = startable.flatMap(({ stages }) => stages.map(({ name }) => `${name}_status`));
  const granted = rights.map((right) => `${right} (${['…', ...(right === 'update' ? statuses : [])].join(', ')})`);
  return (
    `${role} may ${rights.join(' and ')} all columns of ${table}, and so write results such as ${result}, which only the ` +
    'engine should. In a new migration, with your own columns for …:\n' +
    `  revoke ${rights.join(', ')} on ${table} from ${role};\n` +
    `  grant ${granted.join(', ')} on ${table} to ${role};`
  );
}

/**
 * The rights on the whole table that the statements leave each role but trusted ones: insert, update or both, by role.
 */
function wholeTableGrants(table: string, statements: string[]): Map<string, Set<string>> {
  const granted = new Map<string, Set<string>>();
  for (const statement of statements) {
    const [, verb, rights = '', objects = '', roles = ''] = statement.match(grant) ?? [];
    if (!verb || !names(objects).some((name) => isTable(name, table))) continue;
    for (const role of names(roles.replace(/\s+(with|granted|cascade|restrict)\b.*$/is, ''))) {
      const of = granted.get(role) ?? new Set();
      for (const right of wholeRights(rights)) verb.toLowerCase() === 'grant' ? of.add(right) : of.delete(right);
      granted.set(role, of);
    }
  }
  return new Map([...granted].filter(([role, rights]) => rights.size > 0 && !trusted.includes(role)));
}

/** Returns which of insert and update a list of privileges grants without columns. */
function wholeRights(list: string): string[] {
  const whole = names(list.replaceAll(/\w+\s*\([^)]*\)/g, ''));
  if (whole.some((right) => /^all\b/.test(right))) return ['insert', 'update'];
  return ['insert', 'update'].filter((right) => whole.includes(right));
}

function isTable(name: string, table: string): boolean {
  const [schema] = table.split('.');
  return name === table || `public.${name}` === table || name === `all tables in schema ${schema}`;
}

function names(list: string): string[] {
  return list.split(',').map((name) => name.replaceAll('"', '').replaceAll(/\s+/g, ' ').trim().toLowerCase());
}

/** Returns the statements of a migration, without comments and what stands in quotes. */
function statementsOf(text: string): string[] {
  const bare = text.replaceAll(/--.*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|'[^']*'/g, ' ');
  return bare.split(';').map((statement) => statement.trim());
}
