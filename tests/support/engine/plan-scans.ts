// Which tables the statements behind a read walk from end to end.
import pg from 'pg';

interface PlanNode {
  'Node Type': string;
  Schema?: string;
  'Relation Name'?: string;
  Plans?: PlanNode[];
}

/**
 * Runs a statement in a superuser's session of its own. Resolves to the tables of the engine that it reads sequentially, in
 * itself or in any function that it calls, each once.
 */
export async function sequentialScans(superUrl: string, statement: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  const found = new Set<string>();
  let plans = 0;
  client.on('notice', ({ message = '' }) => {
    const plan = message.match(/^duration: .* plan:\n(.*)$/s)?.[1];
    if (!plan) return;
    plans += 1;
    collect(JSON.parse(plan).Plan, found);
  });
  try {
    await client.query(`load 'auto_explain';
      set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; set auto_explain.log_format = json;
      set auto_explain.log_verbose = on; set auto_explain.log_level = notice`);
    await client.query(statement);
  } finally {
    await client.end();
  }
  if (plans === 0) throw new Error('no plan was told');
  return [...found].sort();
}

function collect(node: PlanNode, found: Set<string>): void {
  if (node['Node Type'] === 'Seq Scan' && node.Schema === 'millrace') found.add(node['Relation Name'] ?? '');
  for (const part of node.Plans ?? []) collect(part, found);
}
