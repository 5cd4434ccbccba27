// Migrations that only some projects want: the views for dashboards, and the functions that send traces.
import type { Unstamped } from '../migration-stamps.ts';
import { migrationTexts, sinceUninstall } from './engine-level.ts';
import { migrationsOf, type Project } from './find-project.ts';
import { type Manifest, runtimeChanges } from './shipped.ts';

/** Which of these migrations a project wants. */
export interface Wanted {
  dashboard?: boolean;
  traces?: boolean;
}

interface Source {
  /** The name of the migration after its stamp. */
  name: string;
  /** The file of the runtime that has its text. */
  file: string;
  /** A statement by which a project does away with it. */
  gone: RegExp;
}

const sources: Record<keyof Wanted, Source> = {
  dashboard: { name: 'millrace_watch.sql', file: 'dashboard/watch.sql', gone: /^drop schema .*\bmillrace_watch\b/im },
  traces: { name: 'millrace_traces.sql', file: 'traces/traces.sql', gone: /^drop table .*\btrace_exports\b/im },
};

/** Returns the project's migrations since the last one that removed the engine or what `gone` names. */
function countingOf(project: Project, gone: RegExp): { file: string; text: string }[] {
  const texts = migrationTexts(project);
  const first = Math.max(
    texts.length - sinceUninstall(texts).length,
    texts.findLastIndex((text) => gone.test(text)) + 1,
  );
  return migrationsOf(project)
    .map((file, at) => ({ file, text: texts[at] ?? '' }))
    .slice(first);
}

/** Returns those that are wanted, without those whose text a migration of the project has. A newer text runs over an older one. */
export function optionalMigrations(project: Project, manifest: Manifest, wanted: Wanted): Unstamped[] {
  const shipped = runtimeChanges(manifest);
  return Object.entries(sources).flatMap(([key, { name, file: source, gone }]) => {
    const text = shipped.find(({ file }) => file.endsWith(source))?.text;
    if (!text || !wanted[key as keyof Wanted]) return [];
    return countingOf(project, gone).some((written) => written.text.includes(text)) ? [] : [{ name, text }];
  });
}

/** Returns which of them a project has taken and kept, told by the names of its migrations. */
export function optionalOf(project: Project): Wanted {
  const has = ({ name, gone }: Source) => countingOf(project, gone).some(({ file }) => file.endsWith(`_${name}`));
  return { dashboard: has(sources.dashboard), traces: has(sources.traces) };
}
