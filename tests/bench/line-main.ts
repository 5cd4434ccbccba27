// A process that measures one line of the benchmark, with the stack of the checkout that this file lies in.
import type { Values } from './results.ts';

export interface Order {
  /** A file beside this one which exports `measure`. */
  module: string;
  options: unknown;
}
export type News = { values: Values } | { failed: string };

const tell = (news: News) => process.send?.(news);

process.on('message', async ({ module, options }: Order) => {
  try {
    const { measure } = await import(`./${module}`);
    tell({ values: await measure(options) });
  } catch (error) {
    tell({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
});
// The caller that asked has its answer, or has gone.
process.once('disconnect', () => process.exit());
