// Which level of the engine a project's migrations lead to, read from their texts.
import fs from 'node:fs';
import path from 'node:path';
import { withoutReturns } from './change-set.ts';
import { migrationsOf, type Project } from './find-project.ts';

/** Where `millrace.engine()` says its level; a dump of the schema, such as `migration squash` writes, quotes names. */
const engine = /function\s+"?millrace"?\."?engine"?\s*\([\s\S]*?\blevel := (\d+);/i;
const uninstall = /^do \$uninstall\$[\s\S]*there is no Millrace in this database/m;
const setUp = /^select millrace\.set_up\(\);/m;

/** The state in which a project's migrations leave the engine. */
export interface EngineState {
  /** Null where no migration installs it, or one has removed it since. */
  level: number | null;
  /** Whether the rows that the engine brings along are written after its functions; a squash loses them. */
  isSetUp: boolean;
}

/** Returns the level of the engine that a migration's text installs or upgrades to; null where it has none. */
export function levelIn(text: string): number | null {
  const [, level] = engine.exec(text) ?? [];
  return level === undefined ? null : Number(level);
}

/** Returns whether a migration's text, by a line of its own, calls the engine, as those do that `sync` writes. */
export const callsEngine = (text: string) => /^select millrace\./m.test(text);

/** Returns the state in which these texts of migrations, given in their order, leave the engine. */
export function engineState(texts: string[]): EngineState {
  let state: EngineState = { level: null, isSetUp: false };
  for (const text of texts) {
    const level = levelIn(text);
    if (level !== null) state = { level, isSetUp: setUp.test(text) };
    else if (uninstall.test(text)) state = { level: null, isSetUp: false };
    else if (setUp.test(text)) state = { ...state, isSetUp: true };
  }
  return state;
}

/** Returns the texts of a project's migrations, in their order, with their lines ended as ours are. */
export function migrationTexts(project: Project): string[] {
  return migrationsOf(project).map((name) =>
    withoutReturns(fs.readFileSync(path.join(project.root, 'supabase', 'migrations', name), 'utf8')),
  );
}

/** Returns the migrations' texts since the last uninstall, which has removed all that the earlier ones defined. */
export function sinceUninstall(texts: string[]): string[] {
  return texts.slice(texts.findLastIndex((text) => uninstall.test(text)) + 1);
}
