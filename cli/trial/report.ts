// trial-report.md: what hosted says beside what the local stack says.
import { differs, expectations, type Findings, type Measure } from './expected.ts';

/** The facts that the report states besides its findings. */
export interface About {
  reference: string;
  release: string;
  /** As the server says it. */
  postgres: string;
  began: Date;
  ended: Date;
  /** The parts that could not be taken away. */
  left: string[];
}

/** Returns the report as Markdown. */
export function reportText({ measured, untried }: Findings, about: About): string {
  const measures = Object.keys(expectations) as Measure[];
  const taken = measures.filter((measure) => measured[measure] !== undefined);
  const odd = taken.filter((measure) => differs(measure, measured[measure] as number));
  const minutes = Math.ceil((about.ended.getTime() - about.began.getTime()) / 60_000);
  return [
    '# A trial on hosted Supabase',
    '',
    `Millrace ${about.release} on project ${about.reference}, Postgres ${about.postgres}, ${about.began.toISOString().slice(0, 16)} UTC, ` +
      `${minutes} min.`,
    '',
    '| what | unit | stand-in says | hosted says | differs | page |',
    '| --- | --- | --- | --- | --- | --- |',
    ...taken.map((measure) => row(measure, measured[measure] as number)),
    '',
    odd.length > 0
      ? `${odd.length} of ${taken.length} lie outside of what the pages say: correct docs/local-stack.md and the pages named.`
      : `All ${taken.length} lie within what the pages say.`,
    ...section(
      'Not tried',
      untried.map(({ what, why }) => `${what}: ${why}`),
    ),
    ...section('Not taken away', about.left),
    '',
  ].join('\n');
}

function row(measure: Measure, found: number): string {
  const { what, unit, standIn, page } = expectations[measure];
  return `| ${what} | ${unit} | ${rounded(standIn)} | ${rounded(found)} | ${differs(measure, found) ? '**yes**' : 'no'} | ${page} |`;
}

const rounded = (value: number) => String(Math.abs(value) < 10 ? Math.round(value * 10) / 10 : Math.round(value));

const section = (title: string, lines: string[]) =>
  lines.length > 0 ? ['', `## ${title}`, '', ...lines.map((line) => `- ${line.replaceAll('\n', ' ')}`)] : [];
