// How far a book is: a table at a terminal, elsewhere a line for each change.
import pc from 'picocolors';
import { books } from '../../../supabase/functions/_pipelines/books.ts';
import { type Line, type Watching, watcher } from '../watch-progress.ts';
import { type BookProgress, bookStages, pageStages, readBookProgress } from './book-progress.ts';

const counted = ['queued', 'started', 'completed', 'skipped', 'failed'] as const;
const colours: Record<string, (text: string) => string> = {
  queued: pc.yellow,
  started: pc.cyan,
  waiting: pc.cyan,
  completed: pc.green,
  failed: pc.red,
};

/** How watching ended: all is over, the book waits for a person, or nothing has moved for too long. */
export type BookEnd = 'over' | 'asks' | 'stuck';

/** Shows the progress of a book; each call goes on with the clock of the first. */
export function bookWatcher(watching: Watching, bookId: string): () => Promise<BookEnd> {
  const notes = new Map<string, string>();
  const begun = new Set<string>();
  const watch = watcher(watching, {
    async read() {
      const progress = await readBookProgress(watching.client, bookId);
      note(progress, notes);
      return progress;
    },
    end: ({ running, waitsForPerson }) => (running === 0 ? 'over' : waitsForPerson ? 'asks' : undefined),
    table: (progress, elapsedMs) => bookTable(progress, notes, elapsedMs, watching.out.columns),
    lines: (progress) => bookLines(progress, notes, begun),
  });
  return async () => (await watch()) as BookEnd;
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
 * The progress table, one string for each line, none wider than `columns` from about 70 on. Shows a nought as a dot, so that what
 * moves stands out.
 */
export function bookTable(
  progress: BookProgress,
  notes: ReadonlyMap<string, string>,
  elapsedMs: number,
  columns: number,
): string[] {
  const cell = (text: string) => text.padStart(10);
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

/** Returns the lines of a book; `begun` holds the stages whose note was written. */
function bookLines(progress: BookProgress, notes: ReadonlyMap<string, string>, begun: Set<string>): Line[] {
  const line = (name: string, text: string, aside?: string): Line[] =>
    text ? [{ key: name, text: `${name.padEnd(13)} ${text}`, ...(aside && { aside }) }] : [];
  const lines = pageStages.flatMap((stage) => {
    const counts = counted.map((status) => [status, progress.pageCounts[stage]?.[status] ?? 0] as const);
    const shown = counts.filter(([, n]) => n > 0).map(([status, n]) => `${n} ${status}`);
    return line(stage, shown.join(', '));
  });
  for (const stage of bookStages) {
    const status = progress.statuses[stage] ?? 'pending';
    if (status === 'pending') continue;
    const note = notes.get(stage);
    lines.push(...line(stage, status, note && !begun.has(stage) ? `; ${note}` : undefined));
    begun.add(stage);
  }
  for (const [step, state] of Object.entries(progress.contents)) lines.push(...line(`  toc ${step}`, state));
  return lines;
}
