import { z } from 'zod';
import { type HandlerContext, readSettings, type Traced } from '../_millrace/mod.ts';
import { notionClient } from '../_services/notion/notion-client.ts';
import { notionSettings } from '../_services/notion/notion-settings.ts';
import { type NotionCursor, readDataSource } from '../_services/notion/read-data-source.ts';
import { readSheet, type SheetCursor } from '../_services/sheets/read-sheet.ts';
import { sheetsSettings } from '../_services/sheets/sheets-settings.ts';
import type { SourceRead } from '../_services/text-links.ts';

/** The fields of a source that a poll reads. */
export const linkSource = z.object({
  id: z.string(),
  kind: z.enum(['sheet', 'notion']),
  address: z.string(),
  column_name: z.string().nullable(),
  // Written by each saved portion; a new address empties it.
  cursor: z.unknown(),
});

export type LinkSource = z.output<typeof linkSource>;

/** Reads the next portion behind `cursor`. */
export type ReadOn = (cursor: unknown) => Promise<SourceRead<unknown>>;

const timeoutMs = 15_000;

/** The way to read a source, by its kind. Throws a MisconfiguredError where its settings are missing. */
export function sourceReader(
  { kind, address, column_name: column }: LinkSource,
  { env, signal, ...traced }: Pick<HandlerContext, 'env' | 'signal'> & Traced,
): ReadOn {
  if (kind === 'sheet') {
    const access = { settings: readSettings(sheetsSettings, env), signal, timeoutMs, traced };
    return (cursor) => readSheet({ address, column, cursor: cursor as SheetCursor | null }, access);
  }
  const notion = notionClient(readSettings(notionSettings, env), signal, timeoutMs, traced);
  return (cursor) =>
    readDataSource(notion, { address, column, cursor: cursor as NotionCursor | null }, () => new Date());
}
