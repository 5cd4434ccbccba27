// A thread does not take over the main thread's TypeScript loader on Node 20, so this entry brings its own.
import { register } from 'tsx/esm/api';

register();
await import('./page-reader-worker.ts');
