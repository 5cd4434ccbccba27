import type { ChildItem } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { Children } from '../../supabase/functions/_millrace/stage/spawn-children.ts';

/** Children kept in memory: `chunks` are what was spawned so far, `fanOut` the number that is answered. */
export function keepChildren(
  fanOut = 5,
  /** Called before a chunk is kept; what it throws ends the attempt. */
  before: (items: ChildItem[], last: boolean) => void = () => {},
): Children & { chunks: { items: ChildItem[]; last: boolean }[] } {
  const chunks: { items: ChildItem[]; last: boolean }[] = [];
  return {
    chunks,
    spawn: async (items, last) => {
      before(items, last);
      chunks.push(structuredClone({ items, last }));
      return fanOut;
    },
  };
}
