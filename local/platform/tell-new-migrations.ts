// Tells of migrations that come while a stack runs, which has taken those that were there when it began.
import path from 'node:path';
import { migrationFiles } from './migrate.ts';
import { pushCommand } from './running-stack.ts';
import type { Stack } from './stack.ts';

/** Looks every `everyMs` milliseconds for further migrations in `folder`, and says once how the stack gets them. It keeps no program alive. */
export function tellNewMigrations(folder: string, stack: Stack, say: (message: string) => void, everyMs = 1000): void {
  const known = new Set(migrationFiles({ folder }));
  const look = () => {
    const added = migrationFiles({ folder }).filter((file) => !known.has(file));
    for (const file of added) known.add(file);
    if (added.length === 0) return;
    const names = added.map((file) => path.basename(file)).join(', ');
    say(`This database does not have ${names} yet: ${pushCommand(stack)}`);
  };
  setInterval(look, everyMs).unref();
}
