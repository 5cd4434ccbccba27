// A thread does not take over the main thread's TypeScript loader on Node 20, so this entry brings its own. What is
// large and no TypeScript is loaded before it, since the loader would read it through in search of some.
import 'pdfjs-dist/legacy/build/pdf.mjs';
import 'pdfjs-dist/legacy/build/pdf.worker.mjs';
import { register } from 'tsx/esm/api';

register();
await import('./page-reader-worker.ts');
