// The layers of the engine's SQL: the kernel calls hooks alone, and a module those before it.
import path from 'node:path';
import { modulesOf } from '../engine/engine-sql.ts';
import { callGraph, type Routine } from './call-graph.ts';

/**
 * Looks for calls that lead up, from the kernel into a module or from a module into a later one. Resolves to a line for each, empty when
 * there is none.
 */
export async function checkEngineLayers(root: string): Promise<string> {
  const engine = path.join(root, 'engine');
  return [...callsUp(await callGraph(engine), modulesOf(engine))]
    .map(([call, callers]) => `${call}: ${callers.join(', ')} may call hooks and what lies below alone`)
    .join('\n');
}

/** The calls that lead up, as `from → module: function`, each with the functions that make it. */
function callsUp(graph: Map<string, Routine>, modules: string[]): Map<string, string[]> {
  const calls = new Map<string, string[]>();
  for (const routine of graph.values()) {
    for (const from of new Set(routine.files.map(folderOf))) {
      if (from === 'hooks') continue;
      for (const name of routine.calls) {
        const to = (graph.get(name)?.files ?? []).map(folderOf);
        const [lowest] = to.sort((a, b) => modules.indexOf(a) - modules.indexOf(b));
        if (lowest === undefined || lowest === 'hooks') continue;
        if (modules.indexOf(lowest) <= modules.indexOf(from)) continue;
        const call = `${from} → ${lowest}: ${name}`;
        calls.set(call, [...(calls.get(call) ?? []), routine.name]);
      }
    }
  }
  return new Map([...calls].sort(([a], [b]) => a.localeCompare(b)));
}

/** The module that a file of the engine belongs to, `kernel` or `hooks`. */
const folderOf = (file: string) =>
  file.startsWith('modules/') ? (file.split('/')[1] ?? '') : (file.split(/[/.]/)[0] ?? '');
