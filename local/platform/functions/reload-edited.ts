// An edited function is loaded without a new start of the stack, as `supabase functions serve` does it.
import fs from 'node:fs/promises';
import path from 'node:path';
import type { FunctionsHost } from './host.ts';

/**
 * Checks repeatedly whether a module below `folder` was changed, added or removed; then the next request of each
 * function starts a new process. Work under way is finished by the code that began it. The timer keeps no program
 * alive. Resolves to a function that ends the checks.
 *
 * @param everyMs Milliseconds between two checks.
 */
export async function reloadEdited(folder: string, functions: Pick<FunctionsHost, 'retire'>, everyMs = 1000) {
  let known = await stampOf(folder);
  const look = async () => {
    const stamp = await stampOf(folder);
    if (stamp !== known) for (const name of await fs.readdir(folder)) functions.retire(name);
    known = stamp;
  };
  const timer = setInterval(() => void look().catch(() => {}), everyMs).unref();
  return () => clearInterval(timer);
}

/**
 * Names, times and sizes of all modules, as one text to compare. A file may go meanwhile, or be an editor's link that
 * leads nowhere.
 */
async function stampOf(folder: string): Promise<string> {
  const files = await fs.readdir(folder, { recursive: true }).catch(() => []);
  const modules = files.filter((file) => /\.[jt]sx?$/.test(file)).sort();
  const stats = await Promise.all(modules.map((file) => fs.stat(path.join(folder, file)).catch(() => null)));
  return stats.map((stat, at) => `${modules[at]} ${stat?.mtimeMs} ${stat?.size}`).join('\n');
}
