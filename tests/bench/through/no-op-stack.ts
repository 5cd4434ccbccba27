import path from 'node:path';
import type pg from 'pg';
import type { Stack, StackOptions } from '../../../local/platform/stack.ts';
import { compiled, definitionOf } from '../../support/definitions.ts';
import { createEntityTable } from '../engines/millrace.ts';
import { noOps } from '../hop/functions/_no-op.ts';
import { onAStack } from '../on-a-stack.ts';
import type { Values } from '../results.ts';
import { everyWorkerHasLeft, nothingRuns, until } from '../until.ts';

export const functionNames = ['one', 'two', 'three', 'four', 'five'].map((stage) => `bench-${stage}`);

/** Measures on a stack with the pipeline `bench_hop`, whose functions have had a row each. */
export function onANoOpStack(
  { batch, ...options }: { batch: number } & Pick<StackOptions, 'limits'>,
  measure: (stack: Stack, client: pg.Client) => Promise<Values>,
): Promise<Values> {
  const functionsDir = path.join(import.meta.dirname, '..', 'hop', 'functions');
  return onAStack({ ...options, functionsDir, services: false }, async (stack, client) => {
    await createEntityTable(client, 'bench_hop', 'columns');
    await client.query('select millrace.define($1)', [compiled(definitionOf(noOps('bench_hop', batch)))]);
    await client.query(`insert into public.bench_hop (id, label, one_status) values (0, 'first', 'queued')`);
    await until(client, 'the first row is through', nothingRuns);
    await until(client, 'every worker has left', everyWorkerHasLeft);
    return measure(stack, client);
  });
}
