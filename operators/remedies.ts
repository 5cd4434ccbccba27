// The text of an error for the page and the command line: its message, and the cause and remedy of its code in
// docs/errors.md.
import type { Fault } from './answers.ts';

export interface Remedy {
  cause: string;
  remedy: string;
}

/** Returns a cell of a table as plain text: links and code by what they say. */
const plain = (cell: string) =>
  cell
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .trim();

/**
 * Returns the rows of docs/errors.md that name a code. The codes of our examples are left out, since in another pipeline they mean
 * something else, and so are the answers over HTTP.
 */
export const remedyRows = (page: string): string[] =>
  page
    .split(/^## /m)
    .filter((section) => !/^(The examples|Answers of)/.test(section))
    .flatMap((section) => section.split('\n'))
    .filter((line) => /^\|[^|]*`/.test(line));

/**
 * Reads docs/errors.md, or these rows of it alone, and answers what they say of a code; undefined for a code that a pipeline has made
 * up.
 */
export function readRemedies(page: string): (code: string | undefined) => Remedy | undefined {
  const rows = remedyRows(page).flatMap((line) => {
    const [, codes = '', cause = '', remedy = ''] = line.split('|');
    return [...codes.matchAll(/`([^`]+)`/g)].map(([, code = '']) => ({
      // <service>_failed stands for the code of any service.
      is: new RegExp(`^${code.replace(/<\w+>/, '\\w+')}$`),
      told: {
        cause: plain(cause),
        // The page explains these two words above its tables, which a reader of one error does not see.
        remedy: plain(remedy)
          .replace(/^For good\b/, 'It fails for good')
          .replace(/^Retried\b/, 'Such an attempt is retried'),
      },
    }));
  });
  const exactFirst = rows.toSorted((a, b) => Number(a.is.source.includes('\\w')) - Number(b.is.source.includes('\\w')));
  return (code) => exactFirst.find(({ is }) => is.test(code ?? ''))?.told;
}

/** Returns the text of an error: its message, or for an `unexpected_error` the detail of the error that was thrown. */
export const saidOf = ({ code, message, detail }: Fault): string | undefined =>
  code === 'unexpected_error' && detail ? detail : message;
