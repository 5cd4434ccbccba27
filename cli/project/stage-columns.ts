// The columns that the engine gives an entity table for each stage, and whether migrations have one already.
const columns = ['status', 'job_id', 'result', 'error', 'retry_count', 'started_at', 'completed_at'];

export const columnsOf = (stage: string) => columns.map((column) => `${stage}_${column}`);

/** The first column of a stage that a migration of the user's gives `table`, such as `public.tickets`; undefined for none. */
export function columnThere(migrations: string[], table: string, stage: string): string | undefined {
  const changes = new RegExp(`\\b(?:create|alter)\\s+table\\s+${named(table)}[^;]*`, 'gi');
  const statements = ownStatements(migrations).match(changes) ?? [];
  // In the list of a table, or added to it.
  const has = (column: string) =>
    new RegExp(`(?:[(,]|\\badd(?:\\s+column)?(?:\\s+if\\s+not\\s+exists)?)\\s*${column}\\s+\\w`, 'i');
  return columnsOf(stage).find((column) => statements.some((statement) => has(column).test(statement)));
}

/**
 * The warning that no migration of the user's makes `table`. Undefined where one does, or might, by statements that it
 * builds.
 */
export function tableLacking(migrations: string[], table: string): string | undefined {
  const own = ownStatements(migrations);
  const makes = new RegExp(
    `\\bcreate\\s+(?:unlogged\\s+)?table\\s+${named(table)}|\\brename\\s+to\\s+${bareName(table)}\\b`,
    'i',
  );
  if (makes.test(own) || /\bexecute\b[^;]*\bcreate\b/i.test(own)) return undefined;
  return (
    `No migration makes the table ${table}: write one before \`npx millrace sync\`, or have \`npx supabase db pull\` write it, ` +
    'since a new database, such as that of `npx millrace dev`, has it from there alone.'
  );
}

/** Returns whether a migration gives `table` another name or schema. */
export const renamesTable = (migration: string, table: string) =>
  new RegExp(`\\balter\\s+table\\s+${named(table)}\\s+(?:rename\\s+to|set\\s+schema)\\b`, 'i').test(
    ownStatements([migration]),
  );

const ownStatements = (migrations: string[]) =>
  migrations
    .filter((text) => !text.startsWith('-- Millrace, built of engine/'))
    .map((text) => text.replace(/--.*|\/\*[\s\S]*?\*\//g, ' ').replaceAll('"', ''))
    .join(';\n');

const bareName = (table: string) => table.replaceAll('"', '').split('.').at(-1) ?? '';

/** Matches a table where a statement names it, with its schema or without. */
const named = (table: string) => `(?:if\\s+(?:not\\s+)?exists\\s+|only\\s+)*(?:\\w+\\.)?${bareName(table)}\\b`;
