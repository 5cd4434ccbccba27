// Formats the remedies of an error for a terminal.
import fs from 'node:fs';
import path from 'node:path';
import type { Fault } from '../../operators/answers.ts';
import { readRemedies } from '../../operators/remedies.ts';
import { packageFolder } from '../project/shipped.ts';
import { terminalWidth, words, wrap } from './table.ts';

/** The cause and remedy that docs/errors.md gives for a code. */
export const remedyOf = readRemedies(fs.readFileSync(path.join(packageFolder, 'docs', 'errors.md'), 'utf8'));

/** Returns the remedies of an error: its own hint, then the cause and remedy that docs/errors.md gives for its code. */
export function helpLines({ code, hint }: Fault): string[] {
  const known = remedyOf(code);
  return [hint && `Hint: ${words(hint)}`, known && `${known.cause} ${known.remedy}`]
    .filter((text) => text !== undefined && text !== '')
    .flatMap((text) => wrap(String(text), terminalWidth() - 2).map((part) => `  ${part}`));
}
