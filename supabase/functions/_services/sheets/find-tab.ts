import { z } from 'zod';
import { excerpt } from '../../_millrace/errors.ts';
import { PermanentError } from '../../_millrace/mod.ts';
import { askForSheet, type SheetsAccess } from './sheets-request.ts';

/** A tab of a spreadsheet, and the columns of it that are read. */
export interface Tab {
  title: string;
  rows: number;
  /** The letters of the first and last column that are read. */
  columns: [string, string];
  /** Whether a column was named, so that its first row is its name and its cells are meant to be links. */
  isNamed: boolean;
}

const tabs = z.object({
  sheets: z.array(
    z.object({
      properties: z.object({
        sheetId: z.number().default(0),
        title: z.string(),
        gridProperties: z.object({ rowCount: z.number().default(0), columnCount: z.number().default(0) }).optional(),
      }),
    }),
  ),
});

const header = z.object({
  sheets: z.array(
    z.object({
      data: z
        .array(
          z.object({
            rowData: z
              .array(z.object({ values: z.array(z.object({ formattedValue: z.string().optional() })).optional() }))
              .optional(),
          }),
        )
        .optional(),
    }),
  ),
});

/** The id of the spreadsheet and of the tab that an address of Google Sheets names. Throws a PermanentError. */
export function sheetIds(address: string): { spreadsheet: string; tab: number | null } {
  if (/\/spreadsheets\/(?:u\/\d+\/)?d\/e\//.test(address)) {
    throw new PermanentError(
      'invalid_address',
      'The address is of a copy that was published to the web, which does not tell its sheet: open the sheet itself, share it ' +
        'with the service account, and enter its address from the browser.',
    );
  }
  // An Excel file in Drive has an id too; asked for it, Google says what it is.
  const spreadsheet =
    /\/(?:spreadsheets|file)\/(?:u\/\d+\/)?d\/([\w-]+)/.exec(address)?.[1] ??
    /\/\/drive\.google\.com\/.*[?&]id=([\w-]+)/.exec(address)?.[1] ??
    /^[\w-]{20,}$/.exec(address.trim())?.[0];
  if (spreadsheet === undefined) {
    const shown = JSON.stringify(excerpt(address, 200));
    throw new PermanentError('invalid_address', `${shown} is no address of a Google sheet: copy it from the browser.`);
  }
  const tab = /[#?&]gid=(\d+)/.exec(address)?.[1];
  return { spreadsheet, tab: tab === undefined ? null : Number(tab) };
}

/** Finds the tab that the address names, else the first, and in it the column with this name. Throws a StageError. */
export async function findTab(address: string, column: string | null, access: SheetsAccess): Promise<Tab> {
  const { spreadsheet, tab } = sheetIds(address);
  const fields = 'sheets/properties(sheetId,title,gridProperties(rowCount,columnCount))';
  const { sheets } = tabs.parse(JSON.parse(await askForSheet(spreadsheet, { fields }, access)));
  // A tab may be a chart alone, and has no cells then.
  const found = sheets
    .map(({ properties }) => properties)
    .find(({ sheetId, gridProperties }) => (tab === null ? gridProperties !== undefined : sheetId === tab));
  if (found?.gridProperties === undefined) {
    const named = tab === null ? 'no tab with cells' : `no tab ${tab} with cells any more`;
    throw new PermanentError('no_tab', `The sheet has ${named}: open the tab and copy the address anew.`);
  }
  const { title, gridProperties } = found;
  const whole: Tab = {
    title,
    rows: gridProperties.rowCount,
    columns: ['A', letters(gridProperties.columnCount)],
    isNamed: false,
  };
  return column === null ? whole : namedColumn(spreadsheet, whole, column, access);
}

async function namedColumn(spreadsheet: string, tab: Tab, column: string, access: SheetsAccess): Promise<Tab> {
  const range = cells(tab, 1, 1);
  const fields = 'sheets/data/rowData/values/formattedValue';
  const { sheets } = header.parse(JSON.parse(await askForSheet(spreadsheet, { fields, range }, access)));
  const names =
    sheets[0]?.data?.[0]?.rowData?.[0]?.values?.map(({ formattedValue = '' }) => formattedValue.trim()) ?? [];
  const wanted = column.trim().toLowerCase();
  const place = names.findIndex((name) => name.toLowerCase() === wanted);
  if (place === -1) {
    const known = excerpt(names.filter(Boolean).join(', '), 500) || 'nothing';
    throw new PermanentError(
      'no_column',
      `The first row has no ${JSON.stringify(column)}, it has ${known}: correct the name.`,
    );
  }
  const letter = letters(place + 1);
  return { ...tab, columns: [letter, letter], isNamed: true };
}

/** A range in A1 notation. */
export function cells({ title, columns: [first, last] }: Tab, from: number, to: number): string {
  return `'${title.replaceAll("'", "''")}'!${first}${from}:${last}${to}`;
}

/** The letters of a column, counted from 1: A, …, Z, AA, … */
export function letters(column: number): string {
  const rest = Math.max(column, 1) - 1;
  const last = String.fromCharCode(65 + (rest % 26));
  return rest < 26 ? last : letters(Math.floor(rest / 26)) + last;
}
