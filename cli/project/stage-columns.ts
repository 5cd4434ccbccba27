// The columns that the engine gives an entity table for each stage, and whether migrations have one already.
const columns = ['status', 'job_id', 'result', 'error', 'retry_count', 'started_at', 'completed_at'];

export const columnsOf = (stage: string) => columns.map((column) => `${stage}_${column}`);

/** The first column of a stage that a migration of the user's gives `table`, such as `public.tickets`; undefined for none. */
export function columnThere(migrations: string[], table: string, stage: string): string | undefined {
  const bare = migrations
    .filter((text) => !text.startsWith('-- Millrace, built of engine/'))
    .map((text) => text.replace(/--.*|\/\*[\s\S]*?\*\//g, ' ').replaceAll('"', ''))
    .join(';\n');
  const name = table.split('.').at(-1);
  const changes = new RegExp(
    `\\b(?:create\\s+table|alter\\s+table)\\s+(?:if\\s+(?:not\\s+)?exists\\s+|only\\s+)*(?:\\w+\\.)?${name}\\b[^;]*`,
    'gi',
  );
  const statements = bare.match(changes) ?? [];
  // In the list of a table, or added to it.
  const has = (column: string) =>
    new RegExp(`(?:[(,]|\\badd(?:\\s+column)?(?:\\s+if\\s+not\\s+exists)?)\\s*${column}\\s+\\w`, 'i');
  return columnsOf(stage).find((column) => statements.some((statement) => has(column).test(statement)));
}
