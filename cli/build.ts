// Builds what the engine is installed and uninstalled by. `npm install` runs it, and so does every command before its own work.
// It ends well in any case: npm would take a mistake in engine/ for a broken installation.
import path from 'node:path';
import { writeBuilt } from './engine/write-built.ts';

try {
  await writeBuilt(path.join(import.meta.dirname, '..'));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
}
