// The texts of migrations that define and drop the limits that stages share, and the way back from such texts to limits.
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';

/** By name, each as millrace.define_limit(text, jsonb) takes it. */
export type LimitsJson = Record<string, unknown>;

const statement = /select millrace\.(define|drop)_limit\('(\w+)'(?:, \$limit\$(.*?)\$limit\$)?\);/gs;

/** The latest definition of each shared limit in the migrations' texts, given in order, as JSON; without those dropped. */
export function limitsIn(migrations: string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, verb, name = '', json = ''] of migrations.flatMap((text) => [...text.matchAll(statement)])) {
    if (verb === 'define') found.set(name, json);
    else found.delete(name);
  }
  return found;
}

/** Returns a migration that defines limits which are new or changed; null without any. It goes before the pipelines' migrations. */
export function limitMigration(limits: LimitsJson, defined: Map<string, string>): string | null {
  const changed = Object.entries(limits).filter(([name, limit]) => defined.get(name) !== JSON.stringify(limit));
  const lines = changed.map(
    ([name, limit]) => `select millrace.define_limit('${name}', $limit$${JSON.stringify(limit)}$limit$);`,
  );
  return lines.length > 0 ? [...heading('define'), ...lines, ''].join('\n') : null;
}

/** Returns a migration that drops limits which are gone; null without any. It goes after the pipelines' migrations. */
export function limitDrops(limits: LimitsJson, defined: Map<string, string>): string | null {
  const gone = [...defined.keys()].filter((name) => !(name in limits));
  const lines = gone.map((name) => `select millrace.drop_limit('${name}');`);
  return lines.length > 0 ? [...heading('drop'), ...lines, ''].join('\n') : null;
}

const heading = (verb: string) => [
  `-- Limits that stages share, to ${verb}, written from supabase/functions/_pipelines/shared-limits.ts. Do not edit it: change them`,
  '-- there and sync again, which adds another migration.',
  '',
];

/** Stages that name a limit there is not, one sentence each with the remedy. */
export function unknownLimits(pipelines: CompiledPipeline[], limits: LimitsJson): string[] {
  const known = Object.keys(limits);
  const remedy = known.length > 0 ? `those there are: ${known.join(', ')}` : 'there is none yet';
  return pipelines.flatMap(({ pipeline, stages }) =>
    stages.flatMap((stage) =>
      (stage.limits?.shared ?? [])
        .filter((name) => !known.includes(name))
        .map(
          (name) =>
            `Stage ${stage.name} of pipeline ${pipeline} names the shared limit ${name}, which no file of _pipelines ` +
            `defines: ${remedy}; define it with defineSharedLimits() in _pipelines/shared-limits.ts.`,
        ),
    ),
  );
}

/**
 * Limits that go while a pipeline without a file still names them, one sentence each with the remedy: the database keeps such a
 * pipeline, and refuses to drop what it names.
 */
export function limitsInUse(
  pipelines: CompiledPipeline[],
  limits: LimitsJson,
  defined: Map<string, CompiledPipeline>,
  limitsDefined: Map<string, string>,
): string[] {
  const present = new Set(pipelines.map(({ pipeline }) => pipeline));
  const left = [...defined.values()].filter(({ pipeline }) => !present.has(pipeline));
  return left.flatMap(({ pipeline, stages }) =>
    stages.flatMap((stage) =>
      (stage.limits?.shared ?? [])
        .filter((name) => limitsDefined.has(name) && !(name in limits))
        .map(
          (name) =>
            `Shared limit ${name} cannot go: stage ${stage.name} of pipeline ${pipeline} names it, whose file is gone but ` +
            `which the database keeps. Keep the limit; or bring the file back, take ${name} out of limits.shared, run this, ` +
            'and remove both then.',
        ),
    ),
  );
}
