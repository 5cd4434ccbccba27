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
  return inCountingSession(superUrl, (client, rows) => rows(() => client.query(statement, values)));
}

/** The same for what an action does in a session that lasts, and keeps the plans that it has made. */
export async function inCountingSession<Result>(
  superUrl: string,
  use: (client: pg.Client, rows: (action: () => Promise<unknown>) => Promise<number>) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  let count = 0;
  client.on('notice', ({ message = '' }) => {
    const plan = message.match(/^duration: .* plan:\n(.*)$/s)?.[1];
    if (plan) count += rowsOf(JSON.parse(plan).Plan);
  });
  const listen = (from: number) => client.query(`set auto_explain.log_min_duration = ${from}`);
  try {
    await client.query(`load 'auto_explain';
      set auto_explain.log_nested_statements = on; set auto_explain.log_format = json;
      set auto_explain.log_analyze = on; set auto_explain.log_timing = off; set auto_explain.log_level = notice`);
    return await use(client, async (action) => {
      count = 0;
      await listen(0);
      await action();
      await listen(-1);
      return count;
    });
  } finally {
    await client.end();
  }
}

function rowsOf(node: PlanNode): number {
  const own = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
  return (node.Plans ?? []).reduce((sum, part) => sum + rowsOf(part), own * node['Actual Loops']);
}
