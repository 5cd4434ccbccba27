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

/** The name of each migration after its stamp, and the file of the runtime that has its text. */
const sources: Record<keyof Wanted, [name: string, file: string]> = {
  dashboard: ['millrace_watch.sql', 'dashboard/watch.sql'],
  traces: ['millrace_traces.sql', 'traces/traces.sql'],
};

/** Returns those that are wanted, without those whose text a migration of the project has. A newer text runs over an older one. */
export function optionalMigrations(project: Project, manifest: Manifest, wanted: Wanted): Unstamped[] {
  const shipped = runtimeChanges(manifest);
  const there = sinceUninstall(migrationTexts(project));
  return Object.entries(sources)
    .filter(([key]) => wanted[key as keyof Wanted])
    .map(([, [name, source]]) => ({ name, text: shipped.find(({ file }) => file.endsWith(source))?.text ?? '' }))
    .filter(({ text }) => text !== '' && !there.some((written) => written.includes(text)));
}

/** Returns which of them a project has taken, told by the names of its migrations since the last uninstall. */
export function optionalOf(project: Project): Wanted {
  const texts = migrationTexts(project);
  const names = migrationsOf(project).slice(texts.length - sinceUninstall(texts).length);
  const has = ([name]: [string, string]) => names.some((file) => file.endsWith(`_${name}`));
  return { dashboard: has(sources.dashboard), traces: has(sources.traces) };
}
