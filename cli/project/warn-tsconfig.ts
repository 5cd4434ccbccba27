// Whether the project's own tsconfig.json has tsc read what Deno runs, and refuse it.
import path from 'node:path';
import { parse } from 'jsonc-parser';
import pc from 'picocolors';
import { readText } from './change-set.ts';

interface TsConfig {
  extends?: unknown;
  files?: string[];
  include?: string[];
  exclude?: string[];
  compilerOptions?: { allowImportingTsExtensions?: boolean; rewriteRelativeImportExtensions?: boolean };
}

/**
 * Says what helps where tsconfig.json in `root` takes in the functions, or tests that import them: a pattern such as
 * `tests/tickets-*.test.ts`. Says nothing where another file may allow what they need.
 */
export function warnTsconfig(root: string, tests?: string): void {
  const text = readText(path.join(root, 'tsconfig.json'));
  const config: TsConfig = (text && parse(text, [], { allowTrailingComma: true })) || {};
  const { allowImportingTsExtensions, rewriteRelativeImportExtensions } = config.compilerOptions ?? {};
  if (text === null || config.extends || allowImportingTsExtensions || rewriteRelativeImportExtensions) return;
  const taken = ['supabase/functions', ...(tests ? [tests] : [])].filter((place) => takesIn(config, place));
  if (taken.length === 0) return;
  console.error(
    pc.yellow(
      `tsconfig.json takes in ${taken.join(' and ')}, and tsc refuses imports that end in .ts, as Deno has them: add ` +
        `${taken.map((place) => JSON.stringify(place)).join(', ')} to its "exclude", or set "allowImportingTsExtensions" and "noEmit".`,
    ),
  );
}

/** Returns whether a tsconfig.json includes a place, as far as the beginnings of its patterns show. */
function takesIn({ files, include = files ? [] : ['**/*'], exclude = [] }: TsConfig, place: string): boolean {
  const [folder = ''] = place.split('/');
  const isIncluded = include.some((pattern) => {
    const [first = ''] = pattern.replace(/^(\.\/)+/, '').split('/', 1);
    return first === folder || /^(\*|\.?$)/.test(first);
  });
  const isExcluded = exclude.some((pattern) => {
    const bare = pattern.replace(/^(\.\/|\*\*\/)+/, '').replace(/(\/\*{0,2})+$/, '');
    const isLike = bare.includes('*') && (bare.startsWith('*') || bare.startsWith(`${folder}/`));
    return place === bare || place.startsWith(`${bare}/`) || (isLike && place.endsWith('.ts'));
  });
  return isIncluded && !isExcluded;
}
