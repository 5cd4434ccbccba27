import { excerpt } from '../_millrace/mod.ts';

const earliestYear = 2000;
const latestYear = 2100;

/**
 * A date that a page says, as a moment. One that cannot be meant, such as one in 1900, is a problem instead: people should hear
 * of it, and nobody should count with it.
 */
export function momentOf(text: string | null, what: string, problems: string[]): string | null {
  if (text === null) return null;
  const moment = new Date(text);
  const year = moment.getUTCFullYear();
  if (year >= earliestYear && year <= latestYear) return moment.toISOString();
  problems.push(`${what} is ${JSON.stringify(excerpt(text, 40))}, which was left out.`);
  return null;
}
