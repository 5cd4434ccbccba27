// Shows the progress of a book: at a terminal as a table that it redraws in place, elsewhere as a line for each change.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pc from 'picocolors';
import { books } from '../../../supabase/functions/_pipelines/books.ts';
import { type BookProgress, bookStages, pageStages, readBookProgress } from './book-progress.ts';

const everyMs = 200;
const counted = ['queued', 'started', 'completed', 'failed'] as const;
const colours: Record<string, (text: string) => string> = {
  queued: pc.yellow,
  started: pc.cyan,
  waiting: pc.cyan,
  completed: pc.green,
  failed: pc.red,
};

export interface WatchBookOptions {
  client: pg.Client;
  bookId: string;
  /** Milliseconds without any change after which it gives up. */
  limitMs: number;
  /** Gives up at once when aborted. */
  signal: AbortSignal;
  out: NodeJS.WriteStream;
}

/** How watching ended: all is over, the book waits for a person, or nothing has moved for too long. */
export type BookEnd = 'over' | 'asks' | 'stuck';

/** Shows the progress of a book; each call goes on with the clock of the first. */
export function bookWatcher({ client, bookId, limitMs, signal, out }: WatchBookOptions): () => Promise<BookEnd> {
  const started = Date.now();
  const notes = new Map<string, string>();
  const show = out.isTTY ? tableOn(out, notes) : linesOn(out, notes);
  return async () => {
    let last = '';
    let changedAt = Date.now();
    for (;;) {
      const progress = await readBookProgress(client, bookId);
      note(progress, notes);
      show(progress, Date.now() - started);
      if (progress.running === 0) return 'over';
      if (progress.waitsForPerson) return 'asks';
      const now = JSON.stringify(progress);
      if (now !== last) changedAt = Date.now();
      last = now;
      if (signal.aborted || Date.now() - changedAt > limitMs) return 'stuck';
      await delay(everyMs, undefined, { signal }).catch(() => {});
    }
  };
}

/** Notes how far the pages were when a stage began that waits for some of them. */
function note({ pages, pageCounts, statuses }: BookProgress, notes: Map<string, string>): void {
  for (const stage of bookStages) {
    if (notes.has(stage) || statuses[stage] === 'pending' || !books.stage(stage).after) continue;
    const done = (of: string) => pageCounts[of]?.completed ?? 0;
    notes.set(stage, `began when ${done('blend')} of ${pages} pages were blended, ${done('label')} labelled`);
  }
}

/**
 * The progress table, one string for each line, none wider than `columns` from about 65 on. Shows a nought as a dot, so that what
 * moves stands out.
 */
export function bookTable(
  progress: BookProgress,
  notes: ReadonlyMap<string, string>,
  elapsedMs: number,
  columns: number,
): string[] {
  const cell = (text: string) => text.padStart(11);
  const pageRows = pageStages.map((stage) => {
    const cells = counted.map((status) => {
      const n = progress.pageCounts[stage]?.[status] ?? 0;
      return n === 0 ? pc.dim(cell('·')) : (colours[status] ?? String)(cell(String(n)));
    });
    return `    ${stage.padEnd(14)}${cells.join('')}`;
  });
  const bookRows = bookStages.map(
    (stage) => `    ${stage.padEnd(14)}${stageText(stage, progress, notes, columns - 32)}`,
  );
  return [
    pc.dim(`  ${`pages: ${progress.pages}`.padEnd(16)}${counted.map(cell).join('')}`),
    ...pageRows,
    pc.dim('  book'),
    ...bookRows,
    pc.dim(`  ${(elapsedMs / 1000).toFixed(1)} s`),
  ];
}

function stageText(
  stage: string,
  { statuses, contents }: BookProgress,
  notes: ReadonlyMap<string, string>,
  room: number,
): string {
  const status = statuses[stage] ?? 'pending';
  const steps = Object.entries(contents).map(([step, state]) => `${step} ${state}`);
  const about = [stage === 'toc' ? steps.join(', ') : '', notes.get(stage) ?? ''].filter(Boolean).join('; ');
  return `${(colours[status] ?? pc.dim)(status.padEnd(11))} ${pc.dim(about.slice(0, Math.max(room, 0)))}`.trimEnd();
}

function tableOn(out: NodeJS.WriteStream, notes: Map<string, string>): (progress: BookProgress, ms: number) => void {
  let drawn = 0;
  return (progress, elapsedMs) => {
    const lines = bookTable(progress, notes, elapsedMs, out.columns);
    const up = drawn ? `\x1b[${drawn}A` : '';
    // Clears each line to its end and writes all at once, so that nothing flickers.
    out.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}`);
    drawn = lines.length;
  };
}

function linesOn(out: NodeJS.WriteStream, notes: Map<string, string>): (progress: BookProgress, ms: number) => void {
  const last = new Map<string, string>();
  return (progress, elapsedMs) => {
    const say = (name: string, text: string, aside = '') => {
      if (text && last.get(name) !== text) {
        out.write(`  ${(elapsedMs / 1000).toFixed(1).padStart(5)} s  ${name.padEnd(13)} ${text}${aside}\n`);
      }
      last.set(name, text);
    };
    for (const stage of pageStages) {
      const counts = counted.map((status) => [status, progress.pageCounts[stage]?.[status] ?? 0] as const);
      say(
        stage,
        counts
          .filter(([, n]) => n > 0)
          .map(([status, n]) => `${n} ${status}`)
          .join(', '),
      );
    }
    for (const stage of bookStages) {
      const status = progress.statuses[stage] ?? 'pending';
      const begun = last.has(stage) ? undefined : notes.get(stage);
      if (status !== 'pending') say(stage, status, begun && `; ${begun}`);
    }
    for (const [step, state] of Object.entries(progress.contents)) say(`  toc ${step}`, state);
  };
}
