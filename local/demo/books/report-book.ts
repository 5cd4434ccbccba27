import type pg from 'pg';
import pc from 'picocolors';
import type { z } from 'zod';
import type {
  assembleResult,
  metadataResult,
  structureResult,
} from '../../../supabase/functions/_pipelines/books-results.ts';

export interface FinishedBook {
  metadata: z.output<typeof metadataResult> | null;
  structure: z.output<typeof structureResult> | null;
  assembled: z.output<typeof assembleResult> | null;
  /** The stages that failed, each with the reason. */
  failures: string[];
  failedPages: string[];
}

/** Reads what came of a book. */
export async function readFinishedBook(client: pg.Client, bookId: string): Promise<FinishedBook> {
  const { rows } = await client.query(
    'select metadata_result, structure_result, assemble_result from public.books where id = $1',
    [bookId],
  );
  const failures = await client.query<{ stage: string; message: string }>(
    `select s.name as stage, a.error ->> 'code' || ': ' || (a.error ->> 'message') as message
     from millrace.runs r join millrace.attempts a on a.run_id = r.id join millrace.stages s on s.id = a.stage_id
     where r.entity_id = $1 and a.state = 'failed' and not exists (
       select from millrace.attempts n where n.parent_id = a.id and n.state <> 'skipped') order by a.id`,
    [bookId],
  );
  const pages = await client.query<{ number: number; error: string }>(
    `select number, coalesce(text_layer_error, ocr_error, blend_error, label_error) as error from public.pages
     where book_id = $1 and 'failed' in (text_layer_status, ocr_status, blend_status, label_status) order by number`,
    [bookId],
  );
  return {
    metadata: rows[0].metadata_result,
    structure: rows[0].structure_result,
    assembled: rows[0].assemble_result,
    failures: failures.rows.map(({ stage, message }) => `${stage}: ${message}`),
    failedPages: pages.rows.map(({ number, error }) => `page ${number}: ${error}`),
  };
}

/** Prints what the book is called and who made it. */
export function printMetadata({ metadata }: FinishedBook, print: (line: string) => void): void {
  if (!metadata) {
    print(pc.dim('  none was found'));
    return;
  }
  const { title, subtitle, author, publisher, year, language } = metadata;
  for (const [name, value] of Object.entries({ title, subtitle, author, publisher, year, language })) {
    if (value !== null) print(`  ${pc.dim(name.padEnd(11))}${value}`);
  }
}

/** Prints the outline as a table of contents, with printed numbers and anchors of pages. */
export function printOutline({ structure }: FinishedBook, print: (line: string) => void): void {
  if (!structure) return;
  const { outline, unplaced, confidence } = structure;
  const columns = Math.min(process.stdout.columns ?? 92, 92);
  print(pc.dim(`  ${'printed'.padStart(columns - 16)}  anchor`));
  for (const { title, level, page, label } of outline) {
    const room = columns - 16 - (label ?? '–').length;
    const indent = '  '.repeat(Math.min(level, 4));
    const text = `${indent}${title}`.slice(0, room - 4);
    const dots = pc.dim(` ${'.'.repeat(Math.max(room - text.length - 2, 2))} `);
    print(`${level === 1 ? pc.bold(text) : text}${dots}${label ?? '–'}  ${pc.cyan(`#page-${page}`)}`);
  }
  if (outline.length === 0) print(pc.dim('  neither contents nor headings were found'));
  for (const title of unplaced)
    print(pc.yellow(`  “${title}” is listed in the contents, but no page was found for it`));
  const share = `${Math.round(confidence * 100)} %`;
  print(pc.dim(`  contents, headings and page numbers bear each other out by ${share}`));
}
