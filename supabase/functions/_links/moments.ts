import { excerpt } from '../_millrace/mod.ts';

const earliestYear = 2000;
const latestYear = 2100;

/**
 * Parses a date of a page into a moment. An implausible date, such as one in 1900, becomes a problem instead: people
 * see it, and no calculation uses it.
 */
export function momentOf(text: string | null, what: string, problems: string[]): string | null {
  if (text === null) return null;
  const moment = new Date(text);
  const year = moment.getUTCFullYear();
  if (year >= earliestYear && year <= latestYear) return moment.toISOString();
  problems.push(`${what} is ${JSON.stringify(excerpt(text, 40))}, which was left out.`);
  return null;
}
