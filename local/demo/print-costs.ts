import type pg from 'pg';
import pc from 'picocolors';
import { printTable } from './print-table.ts';

/** A view of costs: a row for each group of entities. */
export interface CostView {
  /** Of the schema public, such as lead_costs. */
  view: string;
  /** The columns that tell the groups. */
  by: string[];
  /** The column that says how many entities a group has. */
  entities: string;
  /** Settings by which a service's work gets a price. */
  prices: string[];
}

/** Prints who spent how much, as a view has it. `isFree`: only stand-ins were asked. */
export async function printCosts(
  client: pg.Client,
  { view, by, entities, prices }: CostView,
  isFree: boolean,
  print: (line: string) => void,
): Promise<void> {
  const names = [...by, entities, 'completed'];
  const { rows } = await client.query<Record<string, string> & { cost: number | null }>(
    `select ${names.join(', ')}, cost_usd::float as cost from public.${view} order by ${by.join(', ')}`,
  );
  printTable(
    [...by.map((name): [string] => [name]), [entities, 'right'], ['completed', 'right'], ['cost_usd', 'right']],
    rows.map((row) => [...names.map((name) => row[name] ?? ''), dollars(row.cost)]),
    print,
  );
  if (isFree && rows.every(({ cost }) => !cost)) {
    const [last = '', ...others] = prices.toReversed();
    print(pc.dim(`  The stand-ins are free. ${others.toReversed().join(', ')} and ${last} show what`));
    print(pc.dim('  others would ask for as much: set them, here or in .env.'));
  }
}

/** Returns an amount as it stands in tables; a dash where no price is set. */
export function dollars(cost: number | null): string {
  if (cost === null) return '–';
  return cost === 0 ? '$0' : `$${cost.toFixed(4)}`;
}
