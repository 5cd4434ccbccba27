// The layers of the engine's SQL: the kernel is closed, calls hooks alone and names its own tables alone. A module calls those
// before it, and names their tables.
import fs from 'node:fs';
import path from 'node:path';
import { modulesOf, statementsIn } from '../engine/engine-sql.ts';
import { callGraph, type Routine } from './call-graph.ts';
import { codeOf } from './sql-code.ts';
import { filesIn } from './sql-statements.ts';

/** The kernel's bounds: as much as a newcomer reads in an evening. Sizes of SQL count code: comments are free. */
export const kernelBounds = { files: 20, bytes: 120_000 };
export const engineBound = 615_000;
const architectureBound = 20_000;
/** Tables of a later module that one before it reads, until a hook takes the place. The kernel has none. */
const readAhead = [
  'figures → children: fan_outs',
  'figures → children: former_costs',
  'graph → children: fan_outs',
  'graph → children: fan_progress',
  'health → figures: sums',
  'journal → operators: bulks',
  'journal → operators: operators',
  'limits → children: fan_outs',
];
/** SQL of the engine that programs write: frozen releases and what the build leaves. */
const written = /^engine\/(?:releases\/|uninstall\.sql$)/;

/**
 * Looks for parts that have outgrown their bounds, for calls that lead up, from the kernel into a module or from a module into a later
 * one, and for READMEs of modules whose last line does not name those that the module stands on. Resolves to a line for each, empty when there is none; `write` corrects the READMEs.
 */
export async function checkEngineLayers(root: string, write: boolean): Promise<string> {
  const engine = path.join(root, 'engine');
  const modules = modulesOf(engine);
  const graph = await callGraph(engine);
  const up = [...callsUp(graph, modules)].map(
    ([call, callers]) => `${call}: ${callers.join(', ')} may call hooks and what lies below alone`,
  );
  return [
    ...sizeFaults(root),
    ...up,
    ...tablesAhead(graph, await tableOwners(engine), modules),
    ...modules.flatMap((name) => readmeFault(engine, name, below(graph, name, modules), write)),
  ].join('\n');
}

/** Compares the engine, the kernel and ARCHITECTURE.md with their bounds. */
function sizeFaults(root: string): string[] {
  const sizes = ['.sql', '.plpgsql']
    .flatMap((ending) => filesIn(root, 'engine', ending))
    .filter((file) => !written.test(file))
    .map((file) => ({ file, bytes: bytesOf(codeOf(fs.readFileSync(path.join(root, file), 'utf8'))) }));
  const kernel = sizes.filter(({ file }) => file.startsWith('engine/kernel/'));
  const [inKernel, inEngine] = [kernel, sizes].map((files) => files.reduce((sum, { bytes }) => sum + bytes, 0));
  const faults: string[] = [];
  if (kernel.length > kernelBounds.files || Number(inKernel) > kernelBounds.bytes)
    faults.push(
      `engine/kernel has ${kernel.length} files and ${inKernel} bytes of code, at most ${kernelBounds.files} and ` +
        `${kernelBounds.bytes}: move to a module, behind a hook, what is no kernel`,
    );
  if (Number(inEngine) > engineBound)
    faults.push(
      `engine has ${inEngine} bytes of code, at most ${engineBound}: remove what nobody would miss before you add`,
    );
  const architecture = path.join(root, 'ARCHITECTURE.md');
  const read = fs.existsSync(architecture) ? fs.statSync(architecture).size : 0;
  if (read > architectureBound) faults.push(`ARCHITECTURE.md has ${read} bytes, at most ${architectureBound}`);
  return faults;
}

const bytesOf = (text: string) => Buffer.byteLength(text);

/** Returns the modules whose functions and views a module calls or reads, in their order. */
function below(graph: Map<string, Routine>, module: string, modules: string[]): string[] {
  const own = [...graph.values()].filter(({ files }) => files.map(folderOf).includes(module));
  const called = own.flatMap(({ calls }) => [...calls].flatMap((name) => graph.get(name)?.files.map(folderOf) ?? []));
  return modules.filter((name) => name !== module && called.includes(name));
}

function readmeFault(engine: string, module: string, others: string[], write: boolean): string[] {
  const file = path.join(engine, 'modules', module, 'README.md');
  const text = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  const line = `Stands on: ${others.join(', ') || 'the kernel alone'}.`;
  if (text.endsWith(`\n\n${line}\n`)) return [];
  if (write && text) fs.writeFileSync(file, `${text.replace(/\nStands on: .*\n$/, '').trimEnd()}\n\n${line}\n`);
  return write && text ? [] : [`engine/modules/${module}/README.md must end with "${line}" (--write)`];
}

/** Returns the calls that lead up, as `from → module: function`, each with the functions that make it. */
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

/** The owner of each table, by its file: `structure/0014_children.sql`, and all that begin as `structure/0004_kernel_runs.sql`. */
async function tableOwners(engine: string): Promise<Map<string, string>> {
  const tables = (await statementsIn(engine, 'structure')).filter(({ kind }) => kind === 'CreateStmt');
  return new Map(
    tables.map(({ file, node }) => [node.relation.relname, /^structure\/\d+_(kernel|[a-z-]+)/.exec(file)?.[1] ?? '']),
  );
}

/** Lists the tables of modules that the kernel names, or a module before their owner. */
function tablesAhead(graph: Map<string, Routine>, owners: Map<string, string>, modules: string[]): string[] {
  const found = new Map<string, string[]>();
  for (const { name, files, others } of graph.values()) {
    for (const from of new Set(files.map(folderOf))) {
      for (const table of from === 'hooks' ? [] : others) {
        const owner = owners.get(table) ?? 'kernel';
        const use = `${from} → ${owner}: ${table}`;
        if (modules.indexOf(owner) <= modules.indexOf(from) || readAhead.includes(use)) continue;
        found.set(use, [...(found.get(use) ?? []), name]);
      }
    }
  }
  return [...found].map(
    ([use, users]) => `table ${use}: ${users.join(', ')} may name tables of their own and of what lies below alone`,
  );
}

/** Returns the module that a file of the engine belongs to, `kernel` or `hooks`. */
const folderOf = (file: string) =>
  file.startsWith('modules/') ? (file.split('/')[1] ?? '') : (file.split(/[/.]/)[0] ?? '');
