// Watches the work of a demo: shows its progress and each stage's first error, at a terminal as a table that it redraws in place,
// elsewhere as a line for each change.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pc from 'picocolors';
import type { NewErrors } from './stage-errors.ts';

const everyMs = 200;

export interface Watching {
  client: pg.Client;
  newErrors: NewErrors;
  /** Milliseconds without any change after which it gives up. */
  limitMs: number;
  /** Gives up at once when aborted. */
  signal: AbortSignal;
  out: Pick<NodeJS.WriteStream, 'write' | 'isTTY' | 'columns'>;
}

/** A line of progress. It is written when its text is another one than that of the last line under the same key. */
export interface Line {
  key: string;
  text: string;
  /** Written behind the text, which it does not change. */
  aside?: string;
}

export interface Progress<Read> {
  read(): Promise<Read>;
  /** Returns how the work has ended; undefined while it goes on. */
  end(read: Read): string | undefined;
  /** Returns the progress as a table for a terminal, one string for each line. */
  table(read: Read, elapsedMs: number): string[];
  lines(read: Read): Line[];
  /** How often lines are written in the table's place, and once at the end; left out, lines are written at each change. */
  linesEveryMs?: number;
  /** Lines to print beside the progress, each once. */
  news?(): Promise<string[]>;
}

/**
 * Shows progress until it has ended. Resolves to how, or to `stuck` where nothing has moved for too long. Throws where a setting
 * keeps a stage from its work. Each call of what is returned goes on with the clock of the first.
 */
export function watcher<Read>(watching: Watching, progress: Progress<Read>): () => Promise<string> {
  const { newErrors, limitMs, signal, out } = watching;
  const started = Date.now();
  const show = out.isTTY ? tableOn(out, progress.linesEveryMs === undefined) : linesOn(out, progress.linesEveryMs ?? 0);
  return async () => {
    let last = '';
    let changedAt = Date.now();
    for (;;) {
      const read = await progress.read();
      const end = progress.end(read);
      const elapsedMs = Date.now() - started;
      const news = [...((await progress.news?.()) ?? []), ...(await newErrors())];
      const table = progress.table(read, elapsedMs);
      show({ table, lines: progress.lines(read), news, elapsedMs, isLast: end !== undefined });
      if (end !== undefined) return end;
      const now = JSON.stringify(read);
      if (now !== last) changedAt = Date.now();
      last = now;
      if (signal.aborted || Date.now() - changedAt > limitMs) return 'stuck';
      await delay(everyMs, undefined, { signal }).catch(() => {});
    }
  };
}

interface Shown {
  table: string[];
  lines: Line[];
  news: string[];
  elapsedMs: number;
  isLast: boolean;
}

/** The complaint about a demo in which nothing has moved for too long. */
export const stuck = 'Nothing has moved for some minutes: it was given up.';

const newsLine = (text: string, elapsedMs: number) => pc.yellow(`  ${seconds(elapsedMs)}  ${text}`);

const seconds = (elapsedMs: number) => `${(elapsedMs / 1000).toFixed(1).padStart(5)} s`;

function tableOn(out: Watching['out'], staysAtTheEnd: boolean): (shown: Shown) => void {
  let drawn = 0;
  return ({ table, lines: others, news, elapsedMs, isLast }) => {
    const left = others.map(({ text }) => `  ${seconds(elapsedMs)}  ${text}`);
    const shown = isLast && !staysAtTheEnd ? left : table;
    const lines = [...news.map((text) => newsLine(text, elapsedMs)), ...shown];
    const up = drawn ? `\x1b[${drawn}A` : '';
    // Clears each line to its end and writes all at once, so that nothing flickers. News stay above the table, and one that has
    // become shorter leaves nothing of the longer one.
    out.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
    drawn = shown.length;
  };
}

function linesOn(out: Watching['out'], everyMs: number): (shown: Shown) => void {
  const last = new Map<string, string>();
  let shownMs = 0;
  return ({ lines, news, elapsedMs, isLast }) => {
    for (const text of news) out.write(`${newsLine(text, elapsedMs)}\n`);
    if (!isLast && elapsedMs - shownMs < everyMs) return;
    for (const { key, text, aside = '' } of lines) {
      if (last.get(key) !== text) out.write(`  ${seconds(elapsedMs)}  ${text}${aside}\n`);
      last.set(key, text);
    }
    shownMs = elapsedMs;
  };
}
