// Addresses in Supabase's own dashboard, where the project is one of supabase.co.

import type { Run } from '../../operators/answers.ts';
import { session } from '../base/session.ts';
import { apiProject } from './api.ts';

const dashboard = 'https://supabase.com/dashboard/project';

/** The project's ref; undefined on one's own machine or server, which has no such dashboard. */
function projectRef(): string | undefined {
  return /^https:\/\/([a-z0-9]{20})\.supabase\.co$/.exec(session.value?.url ?? apiProject.value)?.[1];
}

/**
 * Where the functions' lines about a run are searched for: each names the run's trace. All logs of a project are one ClickHouse table;
 * `function_logs` was a table of BigQuery before. Nobody has tried this on a hosted project yet.
 */
export function logAddress({ trace, began_at, ended_at }: Run): string | undefined {
  const ref = projectRef();
  if (!ref || !trace || !/^[0-9a-f-]{36}$/.test(trace)) return undefined;
  const sql = `-- Millrace: lines about a run
select timestamp, event_message
from logs
where source = 'function_logs'
  and event_message like '%${trace}%'
order by timestamp desc
limit 200`;
  const hour = 3_600_000;
  const until = ended_at ? Date.parse(ended_at) + hour : Date.now();
  const query = new URLSearchParams({
    q: sql,
    its: new Date(Date.parse(began_at) - 60_000).toISOString(),
    ite: new Date(until).toISOString(),
  });
  return `${dashboard}/${ref}/logs/explorer?${query}`;
}

/** Where a run's row stands in the table editor. */
export function rowAddress(run: Run): string | undefined {
  const ref = projectRef();
  const { id, key } = run.table;
  return ref && `${dashboard}/${ref}/editor/${id}?${new URLSearchParams({ filter: `${key}:eq:${run.entity}` })}`;
}

/** Where the SQL editor opens with the query of a run's attempts. */
export function attemptsAddress({ run }: Run): string | undefined {
  const ref = projectRef();
  const content = `-- Millrace: the attempts of run ${run}\nselect * from millrace.timeline(${run});`;
  return ref && `${dashboard}/${ref}/sql/new?${new URLSearchParams({ content })}`;
}

/** Where the log of a function is; undefined on one's own machine or server. */
export function functionLog(name: string): string | undefined {
  const ref = projectRef();
  return ref && `${dashboard}/${ref}/functions/${encodeURIComponent(name.split('/')[0] ?? '')}/logs`;
}
