// Shows the progress of documents: at a terminal as a table that it redraws in place, elsewhere as a line for each change.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pc from 'picocolors';
import { shorten } from '../shorten.ts';
import { type DocumentProgress, readDocumentProgress } from './document-progress.ts';
import { describeRetry, type Retry, readNewRetries } from './document-retries.ts';

const everyMs = 200;
const nameWidth = 32;
const leastCellWidth = 18;
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

type Show = (documents: DocumentProgress[], retries: Retry[], elapsedMs: number) => void;

/** Shows progress and each retried failure until no run is under way any more. Resolves to whether that happened. */
export async function watchDocuments({ client, limitMs, signal, out }: WatchDocumentsOptions): Promise<boolean> {
  const started = Date.now();
  const show = out.isTTY ? tableOn(out) : linesOn(out);
  const seen = new Set<string>();
  let last = '';
  let changedAt = started;
  for (;;) {
    const { running, documents } = await readDocumentProgress(client);
    show(documents, await readNewRetries(client, seen), Date.now() - started);
    if (running === 0) return true;
    const now = JSON.stringify(documents);
    if (now !== last) changedAt = Date.now();
    last = now;
    if (signal.aborted || Date.now() - changedAt > limitMs) return false;
    await delay(everyMs, undefined, { signal }).catch(() => {});
  }
}

/** The progress table, one string for each line. Shows a dot for what has not begun, so that what moves stands out. */
export function documentsTable(documents: DocumentProgress[], elapsedMs: number): string[] {
  const shown = documents.map(({ name }) => shorten(name));
  const width = Math.max(...shown.map(({ length }) => length), 'document'.length) + 2;
  const columns = Object.keys(documents[0]?.statuses ?? {}).map((phase) => {
    const lengths = documents.map((document) => (document.monolith ? 0 : describe(document, phase).length + 2));
    return { phase, width: Math.max(leastCellWidth, phase.length + 2, ...lengths) };
  });
  const rows = documents.map((document, at) => {
    const cells = document.monolith
      ? [coloured(document.monolith, `${document.monolith}, all in one call`)]
      : columns.map(({ phase, width }) =>
          coloured(document.statuses[phase] ?? '', describe(document, phase).padEnd(width)),
        );
    return `  ${(shown[at] ?? '').padEnd(width)}${cells.join('')}`.trimEnd();
  });
  const head =
    `  ${'document'.padEnd(width)}${columns.map(({ phase, width }) => phase.padEnd(width)).join('')}`.trimEnd();
  return [pc.dim(head), ...rows, pc.dim(`  ${(elapsedMs / 1000).toFixed(1)} s`)];
}

function coloured(status: string, text: string): string {
  return (colours[status] ?? pc.dim)(text);
}

function describe({ statuses, chunks }: DocumentProgress, phase: string): string {
  const status = statuses[phase] ?? 'pending';
  if (status === 'pending') return '·';
  const counts = chunks[phase];
  if (!counts) return status;
  const failed = counts.failed > 0 ? `, ${counts.failed} failed` : '';
  return `${status} ${counts.done}/${counts.all}${failed}`;
}

function retryLine(retry: Retry, elapsedMs: number): string {
  const text = `${shorten(retry.name).padEnd(nameWidth)}${describeRetry(retry)}`;
  return pc.yellow(`  ${seconds(elapsedMs)}  ${text}`);
}

function seconds(elapsedMs: number): string {
  return `${(elapsedMs / 1000).toFixed(1).padStart(5)} s`;
}

function tableOn(out: NodeJS.WriteStream): Show {
  let drawn = 0;
  return (documents, retries, elapsedMs) => {
    const table = documentsTable(documents, elapsedMs);
    const lines = [...retries.map((retry) => retryLine(retry, elapsedMs)), ...table];
    const up = drawn ? `\x1b[${drawn}A` : '';
    // Clears each line to its end and writes all at once, so that nothing flickers. Retries stay, above the table.
    out.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}`);
    drawn = table.length;
  };
}

function linesOn(out: NodeJS.WriteStream): Show {
  const last = new Map<string, string>();
  return (documents, retries, elapsedMs) => {
    for (const retry of retries) out.write(`${retryLine(retry, elapsedMs)}\n`);
    documents.forEach((document, at) => {
      const says = document.monolith
        ? [['monolith', document.monolith] as const]
        : Object.keys(document.statuses).map((phase) => [phase, describe(document, phase)] as const);
      for (const [phase, text] of says) {
        const key = `${at} ${phase}`;
        const name = shorten(document.name).padEnd(nameWidth);
        if (text !== '·' && last.get(key) !== text) {
          out.write(`  ${seconds(elapsedMs)}  ${name}${phase.padEnd(10)} ${text}\n`);
        }
        last.set(key, text);
      }
    });
  };
}
