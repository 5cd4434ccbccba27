// Where this package lies and keeps things: as source in the repository, or bundled into dist/ below a project's
// node_modules.
import path from 'node:path';

export const isBundled = path.basename(import.meta.dirname) === 'dist';

/** The package's own folder, with the files that are no code. */
export const ownFolder = isBundled ? path.dirname(import.meta.dirname) : import.meta.dirname;

/** The repository, or the node_modules that this package lies in. */
export const aboveFolder = path.join(ownFolder, '..', '..');

/** The folder of files that are made once and reused at the next start. */
export const cacheFolder = path.join(aboveFolder, '.cache', isBundled ? 'millrace' : '');

/** The pages as they are built. */
export const pagesFolder = isBundled ? path.join(ownFolder, 'dist', 'pages') : path.join(aboveFolder, 'pages', 'dist');
