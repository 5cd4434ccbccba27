// The tables of the remarks and of their batches. Their work is booked like that of parcels (parcels.ts).
import fs from 'node:fs';
import path from 'node:path';
import { modelBatches } from '../../supabase/functions/_millrace/batches/model-batches.ts';
import { remarks } from './functions/remark-pipelines.ts';
import { type Ask, redefine } from './parcels.ts';

const batchTables = path.join(import.meta.dirname, '../../supabase/functions/_millrace/batches/model-batches.sql');
const table = `
  create table public.remarks (id bigint generated always as identity primary key, body text not null,
    created_at timestamptz not null default now());
  alter table public.remarks enable row level security;
  grant select, insert, update, delete on public.remarks to service_role`;

const functionNames = ['remarks-judge', 'remarks-reply', 'model-batches-begin', 'model-batches-distribute'];

/** By name, the modules of the functions that work on remarks and their batches. */
export const remarkFunctions = Object.fromEntries(
  functionNames.map((name) => [name, path.join(import.meta.dirname, 'functions', `${name}.ts`)]),
);

/** Makes the tables and defines the pipelines; `ask` as the owner of the engine. */
export async function defineRemarks(ask: Ask): Promise<void> {
  await ask(table);
  await ask(fs.readFileSync(batchTables, 'utf8'));
  await ask(`select millrace.add_columns('public.remarks', variadic $1)`, [Object.keys(remarks.stages)]);
  await redefine(ask, modelBatches);
  await redefine(ask, remarks);
}
