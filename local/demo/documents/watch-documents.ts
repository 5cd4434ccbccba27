// How far documents are: a table at a terminal, elsewhere a line for each change.
import pc from 'picocolors';
import { shorten } from '../shorten.ts';
import { type Line, type Watching, watcher } from '../watch-progress.ts';
import { type DocumentProgress, readDocumentProgress } from './document-progress.ts';
import { describeRetry, readNewRetries } from './document-retries.ts';

const nameWidth = 32;
const leastCellWidth = 18;
const colours: Record<string, (text: string) => string> = {
  queued: pc.yellow,
  started: pc.cyan,
  completed: pc.green,
  failed: pc.red,
};

/** Shows progress and each retried failure until no run is under way any more. Resolves to whether that happened. */
export async function watchDocuments(watching: Watching): Promise<boolean> {
  const { client } = watching;
  const seen = new Set<string>();
  const watch = watcher(watching, {
    read: () => readDocumentProgress(client),
    end: ({ running }) => (running === 0 ? 'over' : undefined),
    table: ({ documents }, elapsedMs) => documentsTable(documents, elapsedMs),
    lines: ({ documents }) => documents.flatMap(documentLines),
    news: async () =>
      (await readNewRetries(client, seen)).map(
        (retry) => `${shorten(retry.name).padEnd(nameWidth)}${describeRetry(retry)}`,
      ),
  });
  return (await watch()) === 'over';
}

/** Returns the progress table, one string for each line. Shows a dot for what has not begun, so that what moves stands out. */
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

function documentLines(document: DocumentProgress, at: number): Line[] {
  const says = document.monolith
    ? [['monolith', document.monolith] as const]
    : Object.keys(document.statuses).map((phase) => [phase, describe(document, phase)] as const);
  const name = shorten(document.name).padEnd(nameWidth);
  return says
    .filter(([, text]) => text !== '·')
    .map(([phase, text]) => ({ key: `${at} ${phase}`, text: `${name}${phase.padEnd(10)} ${text}` }));
}
