// Lists what a project holds of its owner's. A trial needs an empty project: it drops whatever has the trial's names.
import type { HostedProject } from './hosted-project.ts';

const platforms =
  'auth, storage, realtime, _realtime, vault, graphql, graphql_public, extensions, pgbouncer, supabase_functions, net, cron, pgsodium, ' +
  'pgsodium_masks, pgtle, _analytics, _supavisor, information_schema, supabase_migrations';

const isPlatforms = `n.nspname = any (string_to_array('${platforms}', ', ')) or n.nspname like 'pg\\_%'`;
const ofExtension = (name: string) =>
  `exists (select from pg_depend d where d.objid = ${name}.oid and d.deptype = 'e')`;

/** Where people's own rows would be, if the relation is there, and what one is called. */
const rows: Record<string, string> = {
  'auth.users': `'the user ' || coalesce(email, id::text)`,
  'storage.buckets': `'the bucket ' || name`,
  'cron.job': `'the cron job ' || coalesce(jobname, jobid::text)`,
  'vault.secrets': `'the secret of Vault ' || coalesce(name, id::text)`,
  'supabase_migrations.schema_migrations': `'the migration ' || version`,
};

const objects = `select case c.relkind when 'v' then 'the view ' when 'S' then 'the sequence ' else 'the table ' end
    || n.nspname || '.' || c.relname as content
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and not (${isPlatforms}) and not ${ofExtension('c')}
  union all
  select 'the function ' || n.nspname || '.' || p.proname
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where not (${isPlatforms}) and not ${ofExtension('p')}
  union all
  select 'the schema ' || n.nspname from pg_namespace n
  where n.nspname <> 'public' and not (${isPlatforms}) and not ${ofExtension('n')}`;

/** Names what a project holds of its owner's, by kind and name; nothing for an empty one. */
export async function contentsOf(project: HostedProject): Promise<string[]> {
  const flags = Object.keys(rows).map((name, at) => `to_regclass('${name}') is not null as has_${at}`);
  const [there = {}] = await project.query<Record<string, boolean>>(`select ${flags.join(', ')}`);
  const own = Object.entries(rows).flatMap(([name, word], at) =>
    there[`has_${at}`] ? [`select ${word} from ${name}`] : [],
  );
  const found = await project.query<{ content: string }>([objects, ...own].join('\n  union all\n  '));
  const functions = (await project.functions()).map((name) => `the Edge Function ${name}`);
  const secrets = (await project.secrets()).map((name) => `the setting ${name} of functions`);
  return [...found.map(({ content }) => content), ...functions, ...secrets].sort();
}
