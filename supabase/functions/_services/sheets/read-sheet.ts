import { z } from 'zod';
import { PermanentError, RetriableError } from '../../_millrace/mod.ts';
import type { BrokenCells, SourceLink, SourceRead } from '../text-links.ts';
import { type Cell, cellFields, cellLinks, isBroken } from './cell-links.ts';
import { cells, findTab, letters, sheetIds, type Tab } from './find-tab.ts';
import { askForSheet, type SheetsAccess } from './sheets-request.ts';

/**
 * Where reading a sheet left off. A sheet does not tell what has changed, so a pass reads all of it, range by range; of each it
 * keeps a hash, by which the next pass passes over what is as it was.
 */
export interface SheetCursor {
  /** The pass under way: its tab, and the row that comes next; null between passes. */
  pass: { tab: Tab; row: number } | null;
  /** The tab and columns that the hashes are of. */
  of: string;
  hashes: string[];
}

/** A sheet to read. */
export interface SheetSource {
  /** As the browser shows it; `gid` names the tab. */
  address: string;
  /** The name in the first row of the column that has the links; null for all cells. */
  column: string | null;
  cursor: SheetCursor | null;
}

interface PlacedCell {
  cell: Cell;
  place: string;
}

/** A range in one request: some hundred kilobytes for a column, and within what Google advises for a dozen. */
const rangeRows = 2500;

const rows = z.object({
  sheets: z.array(
    z.object({
      data: z
        .array(z.object({ rowData: z.array(z.object({ values: z.array(z.looseObject({})).optional() })).optional() }))
        .optional(),
    }),
  ),
});

/**
 * Reads the next range of a sheet. Between passes the next begins: `more` is false where it has ended. Throws a StageError that
 * says what to do.
 *
 * @example
 * ```ts
 * const read = await readSheet({ address: source.address, column: 'Link', cursor: null }, access);
 * ```
 */
export async function readSheet(
  { address, column, cursor }: SheetSource,
  access: SheetsAccess,
): Promise<SourceRead<SheetCursor>> {
  const { spreadsheet } = sheetIds(address);
  const pass = cursor?.pass ?? { tab: await findTab(address, column, access), row: 1 };
  const { tab, row } = pass;
  const of = `${tab.title}!${tab.columns.join(':')}`;
  const hashes = cursor?.of === of ? [...cursor.hashes] : [];
  const to = Math.min(row + rangeRows - 1, tab.rows);
  if (row > tab.rows) return { links: [], cursor: { pass: null, of, hashes: [] }, more: false };
  const text = await askForRange(spreadsheet, cells(tab, row, to), access);
  if (text === null) {
    if (cursor?.pass == null)
      throw new RetriableError('no_tab', 'The tab was renamed just now; it is looked for again.');
    return { links: [], cursor: { pass: null, of, hashes }, more: true };
  }
  const place = Math.floor((row - 1) / rangeRows);
  const hash = await hashOf(text);
  const isKnown = hashes[place] === hash;
  hashes[place] = hash;
  const more = to < tab.rows;
  const placed = cellsOf(text, tab, row);
  return {
    links: isKnown ? [] : rangeLinks(placed, tab),
    ...brokenOf(tab.isNamed ? placed : []),
    cursor: { pass: more ? { tab, row: to + 1 } : null, of, hashes: more ? hashes : hashes.slice(0, place + 1) },
    more,
  };
}

/** The answer's text; null where the range is of a tab that was renamed or removed since the pass began. */
async function askForRange(spreadsheet: string, range: string, access: SheetsAccess): Promise<string | null> {
  const fields = `sheets/data/rowData/values(${cellFields})`;
  try {
    return await askForSheet(spreadsheet, { fields, range }, access);
  } catch (error) {
    if (error instanceof PermanentError && error.code === 'no_tab') return null;
    throw error;
  }
}

/** The cells of a range, with the place of each. */
function cellsOf(text: string, tab: Tab, first: number): PlacedCell[] {
  const { sheets } = rows.parse(JSON.parse(text));
  const data = sheets[0]?.data?.[0]?.rowData ?? [];
  const column = columnNumber(tab.columns[0]);
  return data.flatMap(({ values = [] }, down) => {
    const row = first + down;
    if (tab.isNamed && row === 1) return [];
    return values.map((cell, right) => ({ cell, place: `${tab.title}!${letters(column + right)}${row}` }));
  });
}

function rangeLinks(placed: PlacedCell[], { isNamed }: Tab): SourceLink[] {
  return placed.flatMap(({ cell, place }) => cellLinks(cell, isNamed).map((url) => ({ url, place })));
}

/** Counts the cells that show an error in the place of a link. */
function brokenOf(placed: PlacedCell[]): { broken?: BrokenCells } {
  const broken = placed.filter(({ cell }) => isBroken(cell) && cellLinks(cell, true).length === 0);
  const [first] = broken;
  if (!first) return {};
  return { broken: { count: broken.length, text: first.cell.formattedValue?.trim() ?? '', place: first.place } };
}

function columnNumber(name: string): number {
  return [...name].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);
}

async function hashOf(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return [...digest.subarray(0, 12)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
