// Shows what waits in each queue of the links: at a terminal as a table that it redraws in place, elsewhere as a line for each change.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pc from 'picocolors';

const everyMs = 200;
/** Elsewhere than at a terminal a line is enough so often. */
const lineEveryMs = 2000;

/** What waits in a queue and what is in work there. */
export interface QueueCount {
  queue: string;
  ready: number;
  in_backoff: number;
  in_work: number;
}

/** How many links show a word. */
export interface WordCount {
  word: string;
  count: number;
}

export interface WatchLinksOptions {
  client: pg.Client;
  /** Milliseconds without any change after which it gives up. */
  limitMs: number;
  /** Words at which a link rests, for now at least. */
  resting: string[];
  /** Gives up at once when aborted. */
  signal: AbortSignal;
  out: NodeJS.WriteStream;
}

/** Shows the queues until every source has been polled to its end and every link rests. Resolves to whether that happened. */
export async function watchLinks({ client, limitMs, resting, signal, out }: WatchLinksOptions): Promise<boolean> {
  const started = Date.now();
  const show = out.isTTY ? tableOn(out) : linesOn(out);
  let last = '';
  let changedAt = started;
  for (;;) {
    const isOver = await isResting(client, resting);
    const [queues, words] = [await readQueues(client), await readWords(client)];
    show(queues, words, Date.now() - started, isOver);
    if (isOver) return true;
    const now = JSON.stringify([queues, words]);
    if (now !== last) changedAt = Date.now();
    last = now;
    if (signal.aborted || Date.now() - changedAt > limitMs) return false;
    await delay(everyMs, undefined, { signal }).catch(() => {});
  }
}

async function readQueues(client: pg.Client): Promise<QueueCount[]> {
  const { rows } = await client.query<QueueCount>(
    'select queue, ready::int, in_backoff::int, in_work::int from public.link_queues',
  );
  return rows;
}

/** How many links show each word, in the order of the pipeline. */
export async function readWords(client: pg.Client): Promise<WordCount[]> {
  const { rows } = await client.query<WordCount>(
    `select l.status as word, count(*)::int as count from public.linkedin_links l
     join millrace.pipelines p on p.name = 'links'
     join millrace.status_values v on v.pipeline_id = p.id and v.value = l.status
     group by l.status, v.sort_order order by v.sort_order`,
  );
  return rows;
}

async function isResting(client: pg.Client, words: string[]): Promise<boolean> {
  const { rows } = await client.query<{ resting: boolean }>(
    `select not exists (select from public.link_sources s where s.enabled
         and (s.last_polled_at is null or s.next_poll_at <= millrace.now()))
       and not exists (select from public.linkedin_links l where l.status <> all ($1)) as resting`,
    [words],
  );
  return rows[0]?.resting ?? false;
}

/** The queues and the words as a table, one string for each line. */
export function queuesTable(queues: QueueCount[], words: WordCount[], elapsedMs: number): string[] {
  const number = (count: number) => (count === 0 ? pc.dim('0'.padStart(12)) : String(count).padStart(12));
  const rows = queues.map(
    ({ queue, ready, in_backoff, in_work }) =>
      `  ${queue.padEnd(12)}${number(ready)}${number(in_backoff)}${number(in_work)}`,
  );
  const title = ['queue'.padEnd(12), ...['ready', 'in backoff', 'in work'].map((text) => text.padStart(12))].join('');
  return [pc.dim(`  ${title}`), ...rows, `  ${wordsLine(words)}`, pc.dim(`  ${(elapsedMs / 1000).toFixed(1)} s`)];
}

function wordsLine(words: WordCount[]): string {
  return words.map(({ word, count }) => `${colourOf(word)(word)} ${count}`).join('  ') || pc.dim('no links yet');
}

function colourOf(word: string): (text: string) => string {
  if (word === 'extracted') return pc.green;
  if (word === 'dead') return pc.red;
  return word === 'error' ? pc.yellow : pc.cyan;
}

type Show = (queues: QueueCount[], words: WordCount[], elapsedMs: number, isLast: boolean) => void;

function tableOn(out: NodeJS.WriteStream): Show {
  let drawn = 0;
  return (queues, words, elapsedMs) => {
    const lines = queuesTable(queues, words, elapsedMs);
    const up = drawn ? `\x1b[${drawn}A` : '';
    out.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
    drawn = lines.length;
  };
}

function linesOn(out: NodeJS.WriteStream): Show {
  let last = '';
  let shownMs = -lineEveryMs;
  return (queues, words, elapsedMs, isLast) => {
    const busy = queues.filter(({ ready, in_work }) => ready + in_work > 0);
    const line = [
      busy.map(({ queue, ready, in_work }) => `${queue} ${ready}+${in_work}`).join(', ') || 'nothing waits',
      wordsLine(words),
    ].join('  |  ');
    if (line === last || (!isLast && elapsedMs - shownMs < lineEveryMs)) return;
    out.write(`  ${(elapsedMs / 1000).toFixed(1).padStart(5)} s  ${line}\n`);
    last = line;
    shownMs = elapsedMs;
  };
}
