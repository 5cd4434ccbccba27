// What helps against an error, for whoever reads it at a terminal.
import fs from 'node:fs';
import path from 'node:path';
import type { Fault } from '../../operators/answers.ts';
import { readRemedies } from '../../operators/remedies.ts';
import { packageFolder } from '../project/shipped.ts';
import { terminalWidth, words, wrap } from './table.ts';

const remedyOf = readRemedies(fs.readFileSync(path.join(packageFolder, 'docs', 'errors.md'), 'utf8'));

/** What helps against an error: the hint that it brought, and what docs/errors.md says of its code. */
export function helpLines({ code, hint }: Fault): string[] {
  const known = remedyOf(code);
  return [hint && `Hint: ${words(hint)}`, known && `${known.cause} ${known.remedy}`]
    .filter((text) => text !== undefined && text !== '')
    .flatMap((text) => wrap(String(text), terminalWidth() - 2).map((part) => `  ${part}`));
}
