// The review: at a terminal a person decides. Elsewhere the demo decides, and prints its decisions.
import { createInterface, type Interface } from 'node:readline/promises';
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

/** A curator's decision on an article. */
export type Verdict = { kind: 'approve' } | { kind: 'reject' } | { kind: 'edit'; title: string } | { kind: 'leave' };

/** Resolves to the articles at 300, in the order of their titles. */
export async function readWaiting(client: pg.Client): Promise<WaitingArticle[]> {
  const { rows } = await client.query<WaitingArticle>(
    `select id, coalesce(title, url, '') as title, coalesce(summary, '') as summary, coalesce(tags, '{}') as tags, score
     from public.ingestion_queue where status_code = 300 order by title, id`,
  );
  return rows;
}

/**
 * The demo's verdicts where no person decides: edits the first, rejects the last of three or more, approves the rest.
 */
export function statedVerdicts(waiting: WaitingArticle[]): Verdict[] {
  return waiting.map(({ title }, at) => {
    if (at === 0) return { kind: 'edit', title: `${title} (edited)` };
    return at === waiting.length - 1 && at > 1 ? { kind: 'reject' } : { kind: 'approve' };
  });
}

/** The input and output of the person who answers. */
export interface Terminal {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}

/**
 * Asks a person at the terminal about each article. Resolves to the verdicts so far when the person is done, ends the input, or
 * `signal` aborts.
 */
export async function askVerdicts(
  waiting: WaitingArticle[],
  signal: AbortSignal,
  { input, output }: Terminal = { input: process.stdin, output: process.stdout },
): Promise<Verdict[]> {
  const terminal = createInterface({ input, output });
  const closed = new AbortController();
  terminal.once('close', () => closed.abort());
  // The terminal hands Ctrl-C to the reader of the line.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const ended = AbortSignal.any([signal, closed.signal]);
  const verdicts: Verdict[] = [];
  try {
    for (const [at, article] of waiting.entries()) {
      output.write(described(article, `${at + 1} of ${waiting.length}`));
      const verdict = await askVerdict(terminal, ended);
      if (verdict === 'done') break;
      verdicts.push(verdict);
    }
  } catch (error) {
    if (!ended.aborted) throw error;
    output.write('\n');
  } finally {
    terminal.close();
  }
  return verdicts;
}

function described({ title, summary, tags }: WaitingArticle, place: string): string {
  const lines = wrapText(summary, 86).map((line) => `    ${line}\n`);
  const named = tags.length > 0 ? `    ${pc.dim(tags.join(', '))}\n` : '';
  return `\n  ${pc.bold(title)}  ${pc.dim(place)}\n${lines.join('')}${named}`;
}

/** Asks about an article until the answer is a verdict or `done`. */
async function askVerdict(terminal: Interface, signal: AbortSignal): Promise<Verdict | 'done'> {
  for (;;) {
    const answer = await terminal.question('  [a]pprove, [e]dit the title, [r]eject, [l]eave, [d]one: ', { signal });
    const word = answer.trim().toLowerCase();
    if (/^(a|approve)$/.test(word)) return { kind: 'approve' };
    if (/^(r|reject)$/.test(word)) return { kind: 'reject' };
    if (/^(l|leave)$/.test(word)) return { kind: 'leave' };
    if (/^(d|done)$/.test(word)) return 'done';
    if (!/^(e|edit)$/.test(word)) continue;
    const title = (await terminal.question('  New title (nothing: no edit after all): ', { signal })).trim();
    if (title) return { kind: 'edit', title };
  }
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

/** Returns the outcome of the review, a line for each kind of verdict: its codes, the first article, and how many more. */
export function outcomes(verdicts: Verdict[], waiting: WaitingArticle[]): string[] {
  const kinds = [...new Set(verdicts.map(({ kind }) => kind))];
  return kinds.map((kind) => {
    const [first = 0, ...others] = verdicts.flatMap((verdict, at) => (verdict.kind === kind ? [at] : []));
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    return `${inWords[kind]} ${waiting[first]?.title ?? ''}${more}`;
  });
}

const inWords: Record<Verdict['kind'], string> = {
  approve: 'approved  310 → 330       ',
  edit: 'edited    310 → 320 → 330 ',
  reject: 'rejected  310 → 540       ',
  leave: 'left      300             ',
};
