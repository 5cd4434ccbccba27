/** A cell in the API's own form. */
export type CellData = Record<string, unknown> & { formattedValue?: string };

/** A tab as a JSON file has it: rows of cells, each its text or the API's own form. */
interface StoredTab {
  title: string;
  sheetId?: number;
  rows: (string | null | CellData)[][];
}

export interface Tab {
  title: string;
  sheetId: number;
  rows: CellData[][];
}

/** Reads a spreadsheet from a file: CSV for one tab of texts, or JSON `{"tabs": [{"title", "rows"}]}`. */
export function readSpreadsheet({ ending, text }: { ending: string; text: string }): Tab[] {
  const tabs: StoredTab[] = ending === 'csv' ? [{ title: 'Sheet1', rows: parseCsv(text) }] : JSON.parse(text).tabs;
  return tabs.map(({ title, sheetId, rows }, place) => ({
    title,
    sheetId: sheetId ?? place,
    rows: rows.map((row) => row.map((cell) => (typeof cell === 'object' ? (cell ?? {}) : cellOf(cell)))),
  }));
}

/** Returns a text as the API shows it: a web address alone in a cell is a link. */
function cellOf(text: string): CellData {
  if (text === '') return {};
  const cell: CellData = { formattedValue: text, userEnteredValue: { stringValue: text } };
  return /^https?:\/\/\S+$/.test(text) ? { ...cell, hyperlink: text } : cell;
}

/** Reads comma-separated values (RFC 4180). */
export function parseCsv(text: string): string[][] {
  const fields = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n|\n|\r|$)/g;
  const rows: string[][] = [[]];
  for (const [whole, quoted, plain = '', mark] of text.matchAll(fields)) {
    rows.at(-1)?.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (mark === '' || (whole === '' && mark === undefined)) break;
    if (mark !== ',') rows.push([]);
  }
  // A line break at the end begins no row.
  return rows.filter((row, place) => place < rows.length - 1 || row.some((field) => field !== ''));
}

/** Part of a tab, as a range in A1 notation names it; null where it names none. */
export function inRange(
  tabs: Tab[],
  range: string,
): { tab: Tab; startRow: number; startColumn: number; rows: CellData[][] } | null {
  const match = /^(?:'((?:[^']|'')+)'|([^!']+))!([A-Z]*)(\d*)(?::([A-Z]*)(\d*))?$/.exec(range);
  const title = match?.[1]?.replaceAll("''", "'") ?? match?.[2] ?? (match === null ? range.replace(/^'|'$/g, '') : '');
  const tab = tabs.find((one) => one.title === title);
  if (tab === undefined) return null;
  const [, , , firstColumn = '', firstRow = '', lastColumn = firstColumn, lastRow = firstRow] = match ?? [];
  const startColumn = firstColumn === '' ? 0 : columnNumber(firstColumn) - 1;
  const startRow = firstRow === '' ? 0 : Number(firstRow) - 1;
  const endColumn = lastColumn === '' ? undefined : columnNumber(lastColumn);
  const endRow = lastRow === '' ? undefined : Number(lastRow);
  const rows = tab.rows.slice(startRow, endRow).map((row) => row.slice(startColumn, endColumn));
  return { tab, startRow, startColumn, rows };
}

function columnNumber(name: string): number {
  return [...name].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);
}
