// The releases of the engine as the build compares them.
import type { Code } from './catalogue.ts';

/** One frozen release: what a later one is compared with. */
export interface Release {
  level: number;
  version: string;
  /** Name of its migration. */
  migration: string;
  migrationDigest: string;
  /** Its files of engine/structure, which nobody changes any more, with their digests. */
  structure: Record<string, string>;
  /** The digest of all that its code says. */
  source: string;
  code: Code;
}

/** The release that engine/ is to become. */
export interface Target {
  level: number;
  version: string;
  /** The release before; null for the first. */
  from: Release | null;
}
