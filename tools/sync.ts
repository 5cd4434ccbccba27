// `npm run pipelines:sync`: writes the migrations that pipelines lack. With --check it writes nothing and fails when one is missing.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { syncPipelines } from '../cli/sync/sync-pipelines.ts';
import { argumentsOrExit, refuseKeptByNpm } from './command-arguments.ts';

const usage = `npm run pipelines:sync -- [--check]
  --check  write nothing, fail when a migration is missing`;
const supabaseFolder = path.join(import.meta.dirname, '..', 'supabase');

const { check } = argumentsOrExit(usage, () => {
  refuseKeptByNpm('pipelines:sync', ['check']);
  const options = { check: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } } as const;
  return parseArgs({ options }).values;
});
try {
  await syncPipelines(supabaseFolder, check, { ...console, command: 'npm run pipelines:sync' });
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
