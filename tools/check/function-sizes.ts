// Compares how large each function is, once Supabase has bundled it, with its budget.
import path from 'node:path';
import { type FunctionGraph, functionGraph } from '../../cli/check/function-graph.ts';
import { heaviest, megabytes, type Weight, weighFunction } from '../../cli/check/weigh-function.ts';
import { denoBinary } from '../../local/platform/binaries.ts';
import {
  deployedFunctions,
  type FunctionConfig,
  readFunctionConfigs,
} from '../../local/platform/functions/function-config.ts';

/** In megabytes. The platform refuses what is over 5 where it bundles itself, which is wherever there is no Docker. */
const budgets = { plain: 1.2, model: 2.2, any: 4.5 };
/** Functions of the runtime itself, which need no stage's libraries. */
const runtimeFunctions = ['job-complete', 'millrace'];

/** The weight of one function, and its budget. */
export interface FunctionSize extends Weight {
  name: string;
  kind: keyof typeof budgets;
}

/** Looks for functions in `folder` that are over their budget. Resolves to a sentence for each, empty when there is none. */
export async function checkFunctionSizes(folder: string): Promise<string> {
  const tooLarge = (await functionSizes(folder)).filter(({ bytes, kind }) => bytes > budgets[kind] * 1e6);
  return tooLarge
    .map((size) => {
      const over = `${megabytes(size.bytes)} MB, at most ${budgets[size.kind]}`;
      return `${size.name}: ${over}. Its heaviest parts: ${heaviest(size)}`;
    })
    .join('\n');
}

/** Returns the arguments by which a function of this repository is measured. */
const measured = ({ entry, importMap }: Pick<FunctionConfig, 'entry' | 'importMap'>) =>
  ({ entry, importMap, deno: denoBinary(), packages: 'repository' }) as const;

/** Resolves to the files and packages of a function of this repository. */
export const graphOf = (config: Pick<FunctionConfig, 'entry' | 'importMap'>): Promise<FunctionGraph> =>
  functionGraph(measured(config));

/** Measures every function in `folder`. A plain one has no packages but the runtime's, a model's those of openai beside them. */
export async function functionSizes(folder: string): Promise<FunctionSize[]> {
  const configOf = readFunctionConfigs(folder);
  const runtime = await runtimePackages(folder);
  return Promise.all(
    deployedFunctions(folder).map(async (name) => {
      const weight = await weighFunction(measured(configOf(name)));
      const kind = runtimeFunctions.includes(name) ? 'plain' : kindOf(weight.packages, runtime);
      return { name, kind, ...weight };
    }),
  );
}

/** The packages that a stage may load with no library of its own: to be served, and to reach the project's rows and Storage. */
async function runtimePackages(folder: string): Promise<string[]> {
  const entries = ['_millrace/serve-stage.ts', '_services/project-client.ts'].map((file) => path.join(folder, file));
  const importMap = path.join(folder, 'deno.json');
  const graphs = await Promise.all(entries.map((entry) => graphOf({ entry, importMap })));
  return graphs.flatMap(({ packages }) => packages);
}

function kindOf(packages: string[], runtime: string[]): FunctionSize['kind'] {
  const more = packages.filter((folder) => !runtime.includes(folder)).map((folder) => path.basename(folder));
  if (more.length === 0) return 'plain';
  return more.length === 1 && more[0] === 'openai' ? 'model' : 'any';
}
