import pc from 'picocolors';
import type { Stack } from '../platform/stack.ts';

/** Where a demo says to look next. */
export interface NextSteps {
  /** The command that stays up, and what it offers beside SQL. */
  keep: [command: string, offer: string];
  /** Addresses of the demo's own, beside the stack's. */
  addresses?: [name: string, address: string][];
  /** Statements for the database, each with its meaning. */
  statements: [statement: string, meaning: string][];
  /** Other commands, each with what it does. */
  commands: [command: string, meaning: string][];
  /** A last line. */
  note?: string;
}

/** Prints where to look next: the addresses of `stack` where it stays up, the way to keep it up otherwise. */
export function printNextSteps(steps: NextSteps, stack: Stack | undefined, print: (line: string) => void): void {
  // A long statement does not push the meanings of all others to the right.
  const width = Math.max(...steps.statements.map(([{ length }]) => (length <= 62 ? length : 0))) + 2;
  print(`\n${pc.bold('Where to look next')}`);
  if (stack) {
    const addresses = [
      ["Operator's page", stack.operateLink()],
      ['Database', stack.dbUrl],
      ['API', stack.apiUrl],
      ['Secret key', stack.secretKey],
      ...(steps.addresses ?? []),
    ];
    for (const [name = '', value] of addresses) print(`  ${pc.dim(name.padEnd(17))}${value}`);
    print('\n  In the database, as in Supabase Studio’s SQL editor:');
  } else {
    const [command, offer] = steps.keep;
    print(`  ${pc.cyan(command)} stays up${offer}.`);
    print('  It prints where page and database are. There, try:');
  }
  for (const [statement, meaning] of steps.statements) {
    print(`    ${pc.cyan(statement.padEnd(width))}${pc.dim(statement.length < width ? meaning : `  ${meaning}`)}`);
  }
  for (const [command, meaning] of steps.commands) print(`  ${pc.cyan(command)} ${meaning}`);
  if (steps.note) print(`  ${steps.note}`);
  if (stack) print(pc.bold('\nIt stays up until Ctrl-C.'));
}
