// A program of its own, so it brings its own loader for TypeScript. What is large and no TypeScript is loaded before
// that, since the loader would read it through in search of some.
import 'pdfjs-dist/legacy/build/pdf.mjs';
import 'pdfjs-dist/legacy/build/pdf.worker.mjs';
import { register } from 'tsx/esm/api';

register();
await import('./answer-questions.ts');
