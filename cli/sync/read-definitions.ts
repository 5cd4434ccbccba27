// Reads the definitions in a project's _pipelines.
import fs from 'node:fs';
import path from 'node:path';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { SharedLimits } from '../../supabase/functions/_millrace/define/define-shared-limits.ts';
import { LoadError, loadModules } from '../project/load-definitions.ts';

/** The definitions that one file of `_pipelines` exports. */
export interface Definitions {
  file: string;
  /** By the names under which they are exported. */
  exported: Map<string, PipelineDefinition>;
  shared: SharedLimits[];
}

/**
 * Reads every definition of a folder. `instead`: texts by their files, read in the place of what is there. Throws an error that names
 * the file of one that cannot be loaded, with its line.
 */
export async function readDefinitions(folder: string, instead: Record<string, string> = {}): Promise<Definitions[]> {
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.ts'));
  const place = (file: string) => path.join(folder, file);
  const texts = new Map(Object.entries(instead).map(([file, text]) => [fs.realpathSync(place(file)), text]));
  const modules = await loadModules(files.sort().map(place), { instead: texts }).catch((error: LoadError) => {
    throw error.place ? error : new LoadError('supabase/functions/_pipelines', error.message);
  });
  return modules.map((module, at) => {
    const exported = Object.entries(module).filter(([, value]) => typeof value === 'object');
    return {
      file: files[at] ?? '',
      exported: new Map(
        exported.flatMap(([name, value]) =>
          isKind<PipelineDefinition>(value, 'input', 'stages') ? [[name, value] as const] : [],
        ),
      ),
      shared: exported.map(([, value]) => value).filter((value) => isKind<SharedLimits>(value, 'limits', 'names')),
    };
  });
}

function isKind<Kind>(value: unknown, ...fields: (keyof Kind)[]): value is Kind {
  return value !== null && fields.every((field) => field in (value as object));
}
