// Builds what the engine is installed and uninstalled by, and the pages. `npm install` runs it, and so does every command
// before its own work. It ends well in any case: npm would take a mistake in engine/ for a broken installation.
import path from 'node:path';
import { writeBuilt } from './engine/write-built.ts';
import { buildPages } from './pages/build-pages.ts';

const root = path.join(import.meta.dirname, '..');

try {
  await writeBuilt(root);
  await buildPages(root);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
}
