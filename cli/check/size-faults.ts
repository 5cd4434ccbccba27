// Whether functions are small enough to be deployed, where Deno is there to say what they import.
import pc from 'picocolors';
import { findDeno } from '../../local/platform/binaries.ts';
import { readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { heaviest, megabytes, type Weight, weighFunction } from './weigh-function.ts';

/** In megabytes: what Supabase takes of a bundled function, and what it takes where it bundles the function itself. */
const limits = { bundled: 20, sent: 5 };

/**
 * A sentence for each of these functions in `folder` that is too large for Supabase. Warns of those that only Docker can deploy,
 * and of those that cannot be measured, since nothing is fetched for it.
 */
export async function sizeFaults(folder: string, names: string[]): Promise<string[]> {
  const deno = findDeno();
  if (!deno) return [];
  const configOf = readFunctionConfigs(folder);
  const unknown: string[] = [];
  const faults = await Promise.all(
    names.map(async (name): Promise<string[]> => {
      try {
        const { entry, importMap } = configOf(name);
        const measured = { entry, importMap, deno, packages: 'deno' } as const;
        return sizeFault(name, await weighFunction(measured, limits.sent * 1e6));
      } catch (error) {
        unknown.push(`${name} (${(error as Error).message})`);
        return [];
      }
    }),
  );
  if (unknown.length > 0) {
    const [first, ...others] = unknown;
    const many = others.length > 0 ? ` and of ${others.length} more` : '';
    warn(`The size of function ${first}${many} is not known: \`npx millrace dev\` fetches what they import.`);
  }
  return faults.flat();
}

function sizeFault(name: string, weight: Weight): string[] {
  const said = `Function ${name} has ${megabytes(weight.bytes)} MB once it is bundled, and Supabase takes`;
  const parts = `import less. Its heaviest parts, in MB: ${heaviest(weight)}.`;
  if (weight.bytes > limits.bundled * 1e6) return [`${said} ${limits.bundled}: ${parts}`];
  if (weight.bytes > limits.sent * 1e6) warn(`${said} ${limits.sent} where it is deployed without Docker: ${parts}`);
  return [];
}

const warn = (sentence: string) => console.error(pc.yellow(sentence));
