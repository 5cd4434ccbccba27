// `npm run pipelines:sync`: writes a new migration for each pipeline whose TypeScript definition differs from what the
// existing migrations define; never edits one. With --check it writes nothing and fails when one is missing.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type DefinitionJson, definitionsIn, pipelineMigration } from './pipeline-migration.ts';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const pipelinesFolder = path.join(root, 'supabase', 'functions', '_pipelines');
const migrationsFolder = path.join(root, 'supabase', 'migrations');

/** Every export of `_pipelines/*.ts` that is a pipeline definition, as the JSON that pipeline.define() takes. */
async function readPipelines(): Promise<DefinitionJson[]> {
  const files = fs.readdirSync(pipelinesFolder).filter((name) => name.endsWith('.ts'));
  const modules = await Promise.all(
    files.sort().map((name) => import(pathToFileURL(path.join(pipelinesFolder, name)).href)),
  );
  return modules.flatMap((module) =>
    Object.values(module as Record<string, unknown>)
      .filter(
        (value): value is { toJson(): DefinitionJson } => typeof (value as { toJson?: unknown })?.toJson === 'function',
      )
      .map((pipeline) => pipeline.toJson()),
  );
}

/** A timestamp after every existing migration, so that the new one is applied last. */
function nextTimestamp(existing: string[]): string {
  const now = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14);
  const last =
    existing
      .map((name) => name.slice(0, 14))
      .sort()
      .at(-1) ?? '0';
  return now > last ? now : String(BigInt(last) + 1n);
}

const check = process.argv.includes('--check');
const existing = fs
  .readdirSync(migrationsFolder)
  .filter((name) => name.endsWith('.sql'))
  .sort();
const defined = definitionsIn(existing.map((name) => fs.readFileSync(path.join(migrationsFolder, name), 'utf8')));
const changed = (await readPipelines()).filter(
  (pipeline) => JSON.stringify(defined.get(pipeline.pipeline)) !== JSON.stringify(pipeline),
);

if (changed.length === 0) {
  console.log('The migrations define every pipeline as it stands in supabase/functions/_pipelines.');
} else if (check) {
  const names = changed.map((pipeline) => pipeline.pipeline).join(', ');
  console.error(
    `No migration defines the present state of: ${names}. Run \`npm run pipelines:sync\` and commit what it writes.`,
  );
  process.exitCode = 1;
} else {
  for (const pipeline of changed) {
    const name = `${nextTimestamp(existing)}_pipeline_${pipeline.pipeline}.sql`;
    fs.writeFileSync(path.join(migrationsFolder, name), pipelineMigration(pipeline, defined.get(pipeline.pipeline)));
    existing.push(name);
    console.log(`Wrote supabase/migrations/${name}. Apply it with \`supabase db push\`.`);
  }
}
