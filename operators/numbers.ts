// Numbers and spans of time as people read them.

const whole = new Intl.NumberFormat('en-GB');
const compact = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 });

/** Returns a count in few characters: 9,999 and then 10k. */
export const count = (value: number) => (value < 10_000 ? whole.format(value) : compact.format(value).toLowerCase());

/** Counts of a stage; `at_least` names those that stopped at their bound. */
export type Counted<Name extends string> = Record<Name, number> & { at_least?: string[] | null };

/** Returns the sum of counts in few characters: 10k+ where one stopped at its bound, so that there are more. */
export function countOf<Name extends string>(of: Counted<Name>, ...names: Name[]): string {
  const isMore = names.some((name) => of.at_least?.includes(name));
  return count(names.reduce((all, name) => all + of[name], 0)) + (isMore ? '+' : '');
}

/** Returns a count with what is counted: 1 row, 2 rows. The API cuts some counts short, as a text: 10,000+. */
export function many(value: number | string, one: string, more = `${one}s`): string {
  return `${typeof value === 'number' ? count(value) : value} ${String(value) === '1' ? one : more}`;
}

/** How many runs the database looks at for a text before it answers. */
const lookedForText = 2500;

/** Says of a list of runs that its first answers have none, and that more are to come. */
export const noneAmong = (text: unknown, answers: number) =>
  `None among the newest ${text ? `${count(answers * lookedForText)} ` : ''}runs`;

/** US dollars: two decimals from a dollar on, none from 10,000 on; of less than a cent the first two digits. */
export function dollars(value: number): string {
  if (value === 0) return '$0';
  if (value < 0.000_001) return '< $0.000001';
  if (value < 0.01) return `$${value.toLocaleString('en-GB', { maximumSignificantDigits: 2 })}`;
  const most = value < 10_000 ? 2 : 0;
  return `$${value.toLocaleString('en-GB', { minimumFractionDigits: value < 0.995 ? 0 : most, maximumFractionDigits: most })}`;
}

/** Returns the cost of a run as far as providers reported it; empty where no attempt named a cost. */
export function costOf({ cost_usd, unreported }: { cost_usd: number | null; unreported: number }): string {
  const unknown = unreported > 0 && `unknown of ${many(unreported, 'attempt')} without reported tokens or a price`;
  return [cost_usd !== null && dollars(cost_usd), unknown].filter(Boolean).join(', ');
}

/** Returns the cost of a bulk as far as prices are known: a lower bound where the count of runs stopped at its bound. */
export function forecast({ runs, cost_usd }: { runs: string; cost_usd?: number }): string {
  if (cost_usd === undefined) return '';
  return `${runs.endsWith('+') ? 'more than' : 'about'} ${dollars(cost_usd).replace(/^< /, '')}`;
}

const units: [string, number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** Returns a span in few characters: 3 min, 1.5 s. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  const [unit, length] = units.find(([, unitMs]) => ms >= unitMs) ?? ['ms', 1];
  const many = ms / length;
  return `${many < 10 && length > 1 ? Math.round(many * 10) / 10 : Math.round(many)} ${unit}`;
}

/** Returns how long ago something was, which nobody needs in milliseconds: 1 s, 12 s, 3 min. */
export const age = (ms: number) => span(Math.max(1, Math.round(ms / 1000)) * 1000);
