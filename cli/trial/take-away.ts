// How a trial takes away what it brought. Each part may have gone already: it also cleans up after a trial that was killed.
import { setTimeout as sleep } from 'node:timers/promises';
import type { TrialDeps } from '../commands/trial.ts';
import { cancelSql } from '../commands/uninstall.ts';
import type { HostedProject } from './hosted-project.ts';
import { trialFunctions } from './trial-files.ts';
import { trialMigrations } from './trial-folder.ts';

/** The settings of functions that a trial sets. */
export const trialSecrets = [
  'LLM_MODEL',
  'LLM_AUTH_TOKEN',
  'LLM_URL',
  'TRIAL_SERVICE_MS',
  'TRIAL_SERVICE_AUTH_TOKEN',
  'TRIAL_SERVICE_URL',
  'WEBHOOK_SECRET',
];

/** The name of a trial's preview branch. */
export const trialBranch = 'millrace-trial';

/** Resolves to whether a trial has left its table, by which a killed trial is known. */
export async function hasTrial(project: HostedProject): Promise<boolean> {
  const [row] = await project.query<{ is_there: boolean }>(
    `select to_regclass('public.trial_rows') is not null as is_there`,
  );
  return row?.is_there === true;
}

/**
 * Takes everything away, callers before what they call. Resolves to a sentence for each part that it could not take, with
 * what the platform said.
 */
export async function takeAway(project: HostedProject, deps: TrialDeps, mayHaveBranch: boolean): Promise<string[]> {
  const left: string[] = [];
  const part = async (what: string, take: () => Promise<unknown>) => {
    try {
      await take();
      return true;
    } catch (error) {
      left.push(`${what}: ${(error as Error).message}`);
      return false;
    }
  };
  if (mayHaveBranch) await part(`the preview branch ${trialBranch}`, () => takeBranch(project));
  await part('the Edge Functions', () => takeFunctions(project));
  const before = await extensionsBefore(project).catch(() => null);
  // Keeps the tables while the engine is there: they show that the engine is a trial's.
  const engineIsGone = await part('the engine', () => takeEngine(project, deps));
  if (engineIsGone) await part('the tables', () => project.query(tablesSql));
  for (const name of ['pg_net', 'pg_cron', 'supabase_vault']) {
    if (engineIsGone && before && !before.includes(name)) {
      await part(`the extension ${name}`, () => project.query(`drop extension if exists ${name} cascade`));
    }
  }
  await part('the settings of functions', () => project.unsetSecrets(trialSecrets));
  return left;
}

async function takeBranch(project: HostedProject): Promise<void> {
  if ((await project.branches()).includes(trialBranch)) await project.deleteBranch(trialBranch);
}

async function takeEngine(project: HostedProject, { engineUninstall }: TrialDeps): Promise<void> {
  const [row] = await project.query<{ is_there: boolean }>(
    `select to_regclass('millrace.runs') is not null as is_there`,
  );
  if (!row?.is_there) return;
  // Two calls, since the CLI takes one statement a call.
  await project.query(cancelSql);
  await whileBusy(() => project.query(engineUninstall()));
}

/** Repeats a query for half a minute while the database is busy: the sweep may hold a table of the engine just then. */
async function whileBusy(query: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      await query();
      return;
    } catch (error) {
      if (Date.now() > end || !(error as Error).message.includes('the database is busy')) throw error;
      await sleep(500);
    }
  }
}

async function takeFunctions(project: HostedProject): Promise<void> {
  const there = await project.functions();
  const ours = trialFunctions.filter((name) => there.includes(name));
  await Promise.all(ours.map((name) => project.deleteFunction(name)));
}

/** Resolves to the extensions that the project had before the trial, as its table notes them; null where the table is gone. */
async function extensionsBefore(project: HostedProject): Promise<string[] | null> {
  const [row] = await project.query<{ names: string | null }>(
    `select obj_description(to_regclass('public.trial_rows'), 'pg_class') as names`,
  );
  return row?.names?.split(' ') ?? null;
}

const tablesSql = `do $trial$
begin
  drop function if exists public.trial_queue(int, boolean, boolean), public.trial_figures(bigint, bigint),
    public.trial_counters();
  drop table if exists public.trial_rows, public.trial_calls;
  if to_regclass('vault.secrets') is not null then
    delete from vault.secrets where name like 'millrace\\_%';
  end if;
  if to_regclass('cron.job_run_details') is not null then
    delete from cron.job_run_details d where not exists (select from cron.job j where j.jobid = d.jobid);
  end if;
  if to_regclass('supabase_migrations.schema_migrations') is not null then
    delete from supabase_migrations.schema_migrations m
    where m.name = any ('{${trialMigrations.join(',')}}');
    if not exists (select from supabase_migrations.schema_migrations) then
      drop schema supabase_migrations cascade;
    end if;
  end if;
end
$trial$`;
