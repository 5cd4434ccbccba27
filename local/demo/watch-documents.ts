// Live progress of documents: a table that is drawn again in place at a terminal, a line for each change elsewhere.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pc from 'picocolors';
import { type DocumentProgress, type Phase, phases, readDocumentProgress } from './document-progress.ts';
import { shorten } from './shorten.ts';

const everyMs = 200;
const nameWidth = 32;
const cellWidth = 18;
const colours: Record<string, (text: string) => string> = {
  queued: pc.yellow,
  started: pc.cyan,
  completed: pc.green,
  failed: pc.red,
};

export interface WatchDocumentsOptions {
  client: pg.Client;
  /** Milliseconds without any change after which it gives up. */
  limitMs: number;
  /** Gives up at once when aborted. */
  signal: AbortSignal;
  out: NodeJS.WriteStream;
}

/** Shows progress until no run is under way any more. Resolves to whether that happened. */
export async function watchDocuments({ client, limitMs, signal, out }: WatchDocumentsOptions): Promise<boolean> {
  const started = Date.now();
  const show = out.isTTY ? tableOn(out) : linesOn(out);
  let last = '';
  let changedAt = started;
  for (;;) {
    const { running, documents } = await readDocumentProgress(client);
    show(documents, Date.now() - started);
    if (running === 0) return true;
    const now = JSON.stringify(documents);
    if (now !== last) changedAt = Date.now();
    last = now;
    if (signal.aborted || Date.now() - changedAt > limitMs) return false;
    await delay(everyMs, undefined, { signal }).catch(() => {});
  }
}

/** The progress table, one string for each line. What has not begun is shown as a dot, so that what moves stands out. */
export function documentsTable(documents: DocumentProgress[], elapsedMs: number): string[] {
  const shown = documents.map(({ name }) => shorten(name));
  const width = Math.max(...shown.map(({ length }) => length), 'document'.length) + 2;
  const rows = documents.map((document, at) => {
    const cells = document.monolith
      ? [coloured(document.monolith, `${document.monolith}, all in one call`)]
      : phases.map((phase) => coloured(document.statuses[phase], describe(document, phase)));
    return `  ${(shown[at] ?? '').padEnd(width)}${cells.join('')}`.trimEnd();
  });
  const head = `  ${'document'.padEnd(width)}${phases.map((phase) => phase.padEnd(cellWidth)).join('')}`.trimEnd();
  return [pc.dim(head), ...rows, pc.dim(`  ${(elapsedMs / 1000).toFixed(1)} s`)];
}

function coloured(status: string, text: string): string {
  return (colours[status] ?? pc.dim)(text.padEnd(cellWidth));
}

function describe({ statuses, chunks }: DocumentProgress, phase: Phase): string {
  const status = statuses[phase];
  if (status === 'pending') return '·';
  return phase === 'kg_ingest' && chunks ? `${status} ${chunks.done}/${chunks.all}` : status;
}

function tableOn(out: NodeJS.WriteStream): (documents: DocumentProgress[], elapsedMs: number) => void {
  let drawn = 0;
  return (documents, elapsedMs) => {
    const lines = documentsTable(documents, elapsedMs);
    const up = drawn ? `\x1b[${drawn}A` : '';
    // Each line is cleared to its end, and all at once, so that nothing flickers.
    out.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}`);
    drawn = lines.length;
  };
}

function linesOn(out: NodeJS.WriteStream): (documents: DocumentProgress[], elapsedMs: number) => void {
  const last = new Map<string, string>();
  return (documents, elapsedMs) => {
    documents.forEach((document, at) => {
      const says = document.monolith
        ? [['monolith', document.monolith] as const]
        : phases.map((phase) => [phase, describe(document, phase)] as const);
      for (const [phase, text] of says) {
        const key = `${at} ${phase}`;
        const name = shorten(document.name).padEnd(nameWidth);
        if (text !== '·' && last.get(key) !== text) {
          out.write(`  ${(elapsedMs / 1000).toFixed(1).padStart(5)} s  ${name}${phase.padEnd(10)} ${text}\n`);
        }
        last.set(key, text);
      }
    });
  };
}
