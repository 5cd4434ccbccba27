// Builds the pages in pages/, each into a folder of its own that any static host can serve. Git leaves them alone.
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { remedyRows } from '../../operators/remedies.ts';
import { arePagesBuilt, builtPage, notePages, pageNames, pagesDigest } from './pages-built.mjs';

/** Builds the pages of the project in `root`, where they are not what stands in pages/. */
export async function buildPages(root: string): Promise<void> {
  if (arePagesBuilt(root)) return;
  const source = pagesDigest(root);
  const { NODE_ENV: before } = process.env;
  // Vite takes libraries' code for development where a test runner has set another.
  process.env.NODE_ENV = 'production';
  try {
    for (const name of pageNames) await buildPage(root, name);
  } finally {
    if (before === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = before;
  }
  notePages(root, source);
}

/** Loads the rows of docs/errors.md that operators/remedies.ts reads: all of its prose would be a tenth of a page. */
const remediesAlone = {
  name: 'remedies-alone',
  enforce: 'pre' as const,
  load(id: string) {
    const [file = '', query] = id.split('?');
    if (query !== 'raw' || path.basename(file) !== 'errors.md') return null;
    const rows = remedyRows(fs.readFileSync(file, 'utf8'));
    return `export default ${JSON.stringify(rows.map((row) => row.replaceAll(/ *\| */g, '|')).join('\n'))}`;
  },
};

/** Builds a page beside its place and moves it there, so that nobody is served half of it. */
async function buildPage(root: string, name: string): Promise<void> {
  const { build } = await import('vite');
  const target = builtPage(root, name);
  const part = `${target}.${process.pid}`;
  await build({
    configFile: false,
    root: path.join(root, 'pages', name),
    base: './',
    logLevel: 'error',
    plugins: [remediesAlone],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: part,
      emptyOutDir: true,
      assetsDir: '.',
      // No asset is written into the page itself: the page's policy would refuse it.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      target: 'es2022',
    },
  });
  fs.rmSync(target, { recursive: true, force: true });
  fs.renameSync(part, target);
}
