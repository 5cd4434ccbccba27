import { runSupabase } from './run-program.ts';

interface Finding {
  cacheKey: string;
  level: string;
  title: string;
  detail: string;
  remediation: string;
}

/** Hints that the advisors give without warning, and hold here too. The others are about use, which an empty database cannot show. */
const checkedHints = ['unindexed_foreign_keys_', 'no_primary_key_'];

/** Findings that stand, by how their keys begin, each with the reason. */
const justified = [
  // Each pipeline says by policies of its own who may decide, and they can only be permissive: one allows what another does not.
  'multiple_permissive_policies_public_millrace_decisions_',
  // Its replica identity is the full row: a primary key would cost each batch of a worker an index entry.
  'no_primary_key_millrace_pulses',
  // Values of a status are retired, never deleted, so nothing looks up what refers to one.
  'unindexed_foreign_keys_public_status_history_status_history_from_fkey',
  'unindexed_foreign_keys_public_status_history_status_history_to_fkey',
];

/** Asks Supabase's advisors about the database at `url`. Resolves to what they find, empty when nothing. */
export async function checkAdvisors(url: string): Promise<string> {
  const target = `--remote=${url}?sslmode=disable`;
  const answer = await runSupabase(['db', 'advisors', target, '--level', 'info', '--output-format', 'json']);
  if (!answer.ok) return answer.output;
  const { results } = JSON.parse(answer.stdout) as { results: Finding[] };
  const begins = (key: string, beginnings: string[]) => beginnings.some((beginning) => key.startsWith(beginning));
  return results
    .filter(({ level, cacheKey }) => level !== 'INFO' || begins(cacheKey, checkedHints))
    .filter(({ cacheKey }) => !begins(cacheKey, justified))
    .map(({ cacheKey, level, title, detail, remediation }) =>
      [`${level} ${title} (${cacheKey})`, detail, remediation].join('\n  '),
    )
    .join('\n');
}
