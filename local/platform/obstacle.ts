// Whether the stack can run on this machine at all.
import { existsSync } from 'node:fs';
import path from 'node:path';

/** The remedy on a machine on which the stack cannot run. */
export const wayOut =
  'run this project with `npx supabase start` instead, which needs Docker (or, on Linux and Apple silicon and still experimental, ' +
  '`SUPABASE_EXPERIMENTAL_STACK=1 npx supabase start --runtime native`), then `npx millrace connect`';

/** The facts about a machine that decide whether the stack runs on it. */
export interface Machine {
  /** Such as linux-x64, as Node names platform and processor. */
  platform: string;
  /** Whether its C library is glibc; programs for Linux need it. */
  hasGlibc: boolean;
  /** Whether there is a program `postgrest` on the PATH. */
  hasPostgrest: boolean;
}

export function thisMachine(): Machine {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return {
    platform: `${process.platform}-${process.arch}`,
    hasGlibc: Boolean(report.header?.glibcVersionRuntime),
    hasPostgrest: folders.some((folder) => folder && existsSync(path.join(folder, 'postgrest'))),
  };
}

/** Returns why the stack cannot run on a machine, and what to do; undefined where it can. */
export function obstacle({ platform, hasGlibc, hasPostgrest }: Machine): string | undefined {
  if (platform.startsWith('linux-') && !hasGlibc) {
    return `Deno and Postgres need glibc, and this Linux has another C library (musl, as Alpine): ${wayOut}.`;
  }
  if (platform === 'darwin-arm64') {
    if (hasPostgrest) return undefined;
    return `npm has no PostgREST for Apple silicon: run \`brew install postgrest\`, or ${wayOut}.`;
  }
  if (['linux-x64', 'linux-arm64', 'darwin-x64'].includes(platform)) return undefined;
  const onWindows = platform.startsWith('win32') ? 'use WSL 2, or ' : '';
  return `The local stack does not run on ${platform}: ${onWindows}${wayOut}.`;
}
