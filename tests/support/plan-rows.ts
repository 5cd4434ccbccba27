// How much work statements are, in rows: a count that is the same on a busy machine as on an idle one.
import pg from 'pg';

interface PlanNode {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  Plans?: PlanNode[];
}

/**
 * Runs statements in a superuser's session of their own and counts the rows that the nodes of their plans have returned or
 * compared in vain, those of statements within functions and triggers included.
 */
export async function planRows(superUrl: string, statement: string, values: unknown[] = []): Promise<number> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  let rows = 0;
  client.on('notice', ({ message = '' }) => {
    const plan = message.match(/^duration: .* plan:\n(.*)$/s)?.[1];
    if (plan) rows += rowsOf(JSON.parse(plan).Plan);
  });
  try {
    await client.query(`load 'auto_explain';
      set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; set auto_explain.log_format = json;
      set auto_explain.log_analyze = on; set auto_explain.log_timing = off; set auto_explain.log_level = notice`);
    await client.query(statement, values);
  } finally {
    await client.end();
  }
  return rows;
}

function rowsOf(node: PlanNode): number {
  const own = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
  return (node.Plans ?? []).reduce((sum, part) => sum + rowsOf(part), own * node['Actual Loops']);
}
