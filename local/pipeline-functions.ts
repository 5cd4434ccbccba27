// Whether each stage can be run once it is deployed: its function, and what config.toml says of that.
import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'smol-toml';
import type { DefinitionJson } from './pipeline-migration.ts';

const importMap = './functions/deno.json';

interface FunctionConfig {
  verify_jwt?: boolean;
  import_map?: string;
}

/**
 * What keeps stages of these pipelines from running, one sentence each with the remedy. `supabaseFolder` holds `functions`
 * and config.toml. Throws when config.toml is no TOML.
 */
export function functionFaults(pipelines: DefinitionJson[], supabaseFolder: string): string[] {
  const config = parse(fs.readFileSync(path.join(supabaseFolder, 'config.toml'), 'utf8'));
  const configured = (config.functions ?? {}) as Record<string, FunctionConfig>;
  const stageOf = new Map<string, string>();
  return pipelines.flatMap(({ pipeline, stages }) =>
    stages.flatMap((stage) => {
      if (stage.function === undefined) return [];
      const subject = `Stage ${stage.name} of pipeline ${pipeline} runs in function ${stage.function}`;
      const code = path.join('functions', stage.function, 'index.ts');
      const faults: string[] = [];
      const other = stageOf.get(stage.function);
      if (other) faults.push(`${subject}, as ${other} does: give each stage a function of its own.`);
      stageOf.set(stage.function, `stage ${stage.name} of pipeline ${pipeline}`);
      if (!fs.existsSync(path.join(supabaseFolder, code))) {
        faults.push(`${subject}, which does not exist: write supabase/${code}, or correct the name in the definition.`);
      }
      const settings = configured[stage.function];
      if (settings?.verify_jwt !== false || settings.import_map !== importMap) {
        faults.push(
          `${subject}, for which supabase/config.toml must say: ` +
            `[functions.${stage.function}] with the lines verify_jwt = false and import_map = "${importMap}".`,
        );
      }
      return faults;
    }),
  );
}
