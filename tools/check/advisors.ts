import { runSupabase } from './run-program.ts';

interface Finding {
  cacheKey: string;
  level: string;
  title: string;
  detail: string;
  remediation: string;
}

/** Findings that stand, by how their keys begin, each with the reason. */
const justified = [
  // Each pipeline says by policies of its own who may decide, and they can only be permissive: one allows what another does not.
  'multiple_permissive_policies_public_millrace_decisions_',
];

/** Asks Supabase's advisors about the database at `url`. Resolves to their warnings and errors, empty when none. */
export async function checkAdvisors(url: string): Promise<string> {
  const target = `--remote=${url}?sslmode=disable`;
  // Findings below a warning are about use, such as an index never read, which an empty database cannot show.
  const answer = await runSupabase(['db', 'advisors', target, '--level', 'warn', '--output-format', 'json']);
  if (!answer.ok) return answer.output;
  const { results } = JSON.parse(answer.stdout) as { results: Finding[] };
  return results
    .filter(({ cacheKey }) => !justified.some((beginning) => cacheKey.startsWith(beginning)))
    .map(({ cacheKey, level, title, detail, remediation }) =>
      [`${level} ${title} (${cacheKey})`, detail, remediation].join('\n  '),
    )
    .join('\n');
}
