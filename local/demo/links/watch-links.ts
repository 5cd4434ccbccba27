// Shows the queues of the links: a table at a terminal, elsewhere a line of words every three seconds.
import type pg from 'pg';
import pc from 'picocolors';
import { type Watching, watcher } from '../watch-progress.ts';

const lineEveryMs = 3000;
const sweepEveryMs = 1000;

/** The numbers of links that wait in a queue and are in work there. */
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

/**
 * Shows the queues until every source has been polled to its end and every link rests, for now at least, at one of these words.
 * Resolves to whether that happened. With `sweeps` it does each second what pg_cron does every ten.
 */
export async function watchLinks(watching: Watching, resting: string[], sweeps = false): Promise<boolean> {
  const { client } = watching;
  let sweptAt = sweeps ? 0 : Number.POSITIVE_INFINITY;
  const watch = watcher(watching, {
    read: async () => {
      if (Date.now() - sweptAt >= sweepEveryMs) {
        sweptAt = Date.now();
        await client.query('select millrace.sweep()');
      }
      return {
        isOver: await isResting(client, resting),
        queues: await readQueues(client),
        words: await readWords(client),
      };
    },
    end: ({ isOver }) => (isOver ? 'over' : undefined),
    table: ({ queues, words }, elapsedMs) => queuesTable(queues, words, elapsedMs),
    lines: ({ words }) => [{ key: 'links', text: wordsLine(words) }],
    linesEveryMs: lineEveryMs,
  });
  return (await watch()) === 'over';
}

async function readQueues(client: pg.Client): Promise<QueueCount[]> {
  const { rows } = await client.query<QueueCount>(
    'select queue, ready::int, in_backoff::int, in_work::int from public.link_queues',
  );
  return rows;
}

/** Resolves to how many links show each word, in the order of the pipeline. */
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

/** Returns the queues and the words as a table, one string for each line. */
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
