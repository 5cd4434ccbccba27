// The core of the engine is to know no feature. What it still calls of them stands in a list that may only shrink.
import fs from 'node:fs';
import path from 'node:path';
import { callGraph, type Routine } from './call-graph.ts';

const list = 'cli/check/core-calls.txt';

/**
 * Compares what functions of engine/code/core call of engine/code/features with the list. Resolves to a line for each new call and
 * for each name on the list that is called no more; `write` takes the latter off.
 */
export async function checkEngineLayers(root: string, write: boolean): Promise<string> {
  const graph = await callGraph(path.join(root, 'engine'));
  const called = callsOfFeatures(graph);
  const listFile = path.join(root, list);
  const listed = fs.readFileSync(listFile, 'utf8').split('\n').filter(Boolean);
  const kept = listed.filter((name) => called.has(name));
  if (write && kept.length < listed.length) fs.writeFileSync(listFile, `${kept.join('\n')}\n`);
  const added = [...called].filter(([name]) => !listed.includes(name));
  const gone = write ? [] : listed.filter((name) => !called.has(name));
  return [
    ...added.map(([name, callers]) => `${callers.join(', ')} calls ${name} of ${graph.get(name)?.files.join(', ')}`),
    ...gone.map((name) => `${name} is on the list, but the core does not call it`),
  ].join('\n');
}

/** The functions of features that the core calls, each with its callers there. */
function callsOfFeatures(graph: Map<string, Routine>): Map<string, string[]> {
  const lies = ({ files }: Routine, folder: string) => files.every((file) => file.startsWith(`code/${folder}/`));
  const called = new Map<string, string[]>();
  for (const routine of graph.values()) {
    if (!lies(routine, 'core')) continue;
    for (const name of routine.calls) {
      const other = graph.get(name);
      if (other && lies(other, 'features')) called.set(name, [...(called.get(name) ?? []), routine.name]);
    }
  }
  return called;
}
