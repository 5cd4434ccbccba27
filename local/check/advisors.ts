import { runSupabase } from './run-program.ts';

interface Finding {
  cacheKey: string;
  level: string;
  title: string;
  detail: string;
  remediation: string;
}

/** Asks Supabase's advisors about the database at `url`. Resolves to their warnings and errors, empty when none. */
export async function checkAdvisors(url: string): Promise<string> {
  const target = `--remote=${url}?sslmode=disable`;
  // Below a warning they judge by use, such as an index never read, which an empty database cannot show.
  const answer = await runSupabase(['db', 'advisors', target, '--level', 'warn', '--output-format', 'json']);
  if (!answer.ok) return answer.output;
  const { results } = JSON.parse(answer.stdout) as { results: Finding[] };
  return results
    .map(({ cacheKey, level, title, detail, remediation }) =>
      [`${level} ${title} (${cacheKey})`, detail, remediation].join('\n  '),
    )
    .join('\n');
}
