// The review: at a terminal a person decides, elsewhere the demo does, and says what.
import { createInterface } from 'node:readline/promises';
import type pg from 'pg';
import pc from 'picocolors';
import { wrapText } from '../wrap-text.ts';

/** An article that waits for a curator. */
export interface WaitingArticle {
  id: string;
  title: string;
  summary: string;
  tags: string[];
  score: number | null;
}

/** What a curator does with an article. */
export type Verdict = { kind: 'approve' } | { kind: 'reject' } | { kind: 'edit'; title: string } | { kind: 'leave' };

/** The articles at 300, in the order of their titles. */
export async function readWaiting(client: pg.Client): Promise<WaitingArticle[]> {
  const { rows } = await client.query<WaitingArticle>(
    `select id, coalesce(title, url, '') as title, coalesce(summary, '') as summary, coalesce(tags, '{}') as tags, score
     from public.ingestion_queue where status_code = 300 order by title, id`,
  );
  return rows;
}

/** What the demo decides where nobody is there: it edits the first, rejects the last, and approves all others. */
export function statedVerdicts(waiting: WaitingArticle[]): Verdict[] {
  return waiting.map(({ title }, at) => {
    if (at === 0) return { kind: 'edit', title: `${title} (edited)` };
    return at === waiting.length - 1 && at > 1 ? { kind: 'reject' } : { kind: 'approve' };
  });
}

/** Asks a person at the terminal about each article. Resolves to the verdicts so far when `signal` aborts. */
export async function askVerdicts(
  waiting: WaitingArticle[],
  signal: AbortSignal,
  print: (line: string) => void,
): Promise<Verdict[]> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const verdicts: Verdict[] = [];
  try {
    for (const [at, { title, summary, tags }] of waiting.entries()) {
      print(`\n  ${pc.bold(title)}  ${pc.dim(`${at + 1} of ${waiting.length}`)}`);
      for (const line of wrapText(summary, 86)) print(`    ${line}`);
      print(pc.dim(`    ${tags.join(', ')}`));
      const answer = await terminal.question('  [a]pprove, [e]dit the title, [r]eject, [l]eave, [d]one: ', { signal });
      const word = answer.trim().toLowerCase();
      if (word.startsWith('d')) break;
      if (word.startsWith('e')) {
        const edited = await terminal.question('  New title: ', { signal });
        verdicts.push(edited.trim() ? { kind: 'edit', title: edited.trim() } : { kind: 'leave' });
      } else if (word.startsWith('r')) verdicts.push({ kind: 'reject' });
      else verdicts.push(word.startsWith('l') ? { kind: 'leave' } : { kind: 'approve' });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    terminal.close();
  }
  return verdicts;
}

/** Carries a verdict out by writing codes, as a page does. */
export async function carryOut(client: pg.Client, id: string, verdict: Verdict): Promise<void> {
  if (verdict.kind === 'leave') return;
  const move = (code: number) =>
    client.query('update public.ingestion_queue set status_code = $2 where id = $1', [id, code]);
  await move(310);
  if (verdict.kind === 'edit') {
    await move(320);
    await client.query('update public.ingestion_queue set title = $2 where id = $1', [id, verdict.title]);
  }
  await move(verdict.kind === 'reject' ? 540 : 330);
}

/** A verdict in the codes that it writes. */
export function codesOf({ kind }: Verdict): string {
  return { approve: '310 → 330', edit: '310 → 320 → 330', reject: '310 → 540', leave: 'left at 300' }[kind];
}
