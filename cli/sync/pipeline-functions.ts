// Whether each stage can be run once it is deployed: its function, and what the configuration says of that.
import fs from 'node:fs';
import path from 'node:path';
import { readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { configFile } from '../../local/platform/functions/project-config.ts';
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';

/** Returns the function of a stage. */
export const functionOf = (pipeline: string, stage: string) => `${pipeline}-${stage}`.replaceAll('_', '-');

/**
 * The faults that keep stages of these pipelines from running, one sentence each with the remedy. Throws where the
 * configuration cannot be read.
 *
 * @param supabaseFolder The folder of `functions` and the configuration.
 */
export function functionFaults(pipelines: CompiledPipeline[], supabaseFolder: string): string[] {
  const configOf = readFunctionConfigs(path.join(supabaseFolder, 'functions'));
  const config = path.basename(configFile(supabaseFolder) ?? 'config.toml');
  const stageOf = new Map<string, string>();
  return pipelines.flatMap(({ pipeline, stages }) =>
    stages.flatMap((stage) => {
      if (stage.function_name === undefined) return [];
      const subject = `Stage ${stage.name} of pipeline ${pipeline} runs in function ${stage.function_name}`;
      const { entry, importMap, verifyJwt } = configOf(stage.function_name);
      const code = path.relative(supabaseFolder, entry);
      const faults: string[] = [];
      const other = stageOf.get(stage.function_name);
      if (other) faults.push(`${subject}, as ${other} does: give each stage a function of its own.`);
      stageOf.set(stage.function_name, `stage ${stage.name} of pipeline ${pipeline}`);
      if (!fs.existsSync(entry)) {
        faults.push(`${subject}, which does not exist: write supabase/${code}, or correct the name in the definition.`);
      }
      if (verifyJwt || importMap === undefined) {
        faults.push(
          `${subject}, for which ${sectionLacking(config, stage.function_name)}; the second is not needed where the ` +
            'function’s folder has a deno.json of its own.',
        );
      } else if (!fs.existsSync(importMap)) {
        const missing = path.relative(supabaseFolder, importMap);
        faults.push(`${subject}, whose import map supabase/${missing} does not exist: correct it in ${config}.`);
      }
      return faults;
    }),
  );
}

/** Returns the section that the configuration lacks for a function, in the language of the configuration. */
function sectionLacking(config: string, name: string): string {
  return config.endsWith('.toml')
    ? `supabase/${config} must say: [functions.${name}] with the lines verify_jwt = false and import_map = "./functions/deno.json"`
    : `supabase/${config} must say, in "functions": "${name}": { "verify_jwt": false, "import_map": "./functions/deno.json" }`;
}
