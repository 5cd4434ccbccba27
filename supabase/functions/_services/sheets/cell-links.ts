import { textLinks } from '../text-links.ts';

/** A cell, as far as it may hold links. */
export interface Cell {
  formattedValue?: string;
  hyperlink?: string;
  textFormatRuns?: { format?: { link?: { uri?: string } } }[];
  chipRuns?: { chip?: { richLinkProperties?: { uri?: string } } }[];
  userEnteredValue?: { formulaValue?: string };
}

/** The fields that `cellLinks` reads, as a mask of the API. */
export const cellFields =
  'formattedValue,hyperlink,textFormatRuns/format/link/uri,chipRuns/chip/richLinkProperties/uri,userEnteredValue/formulaValue';

const linkFormula = /\bHYPERLINK\s*\(\s*"((?:[^"]|"")*)"/gi;

/**
 * The links of a cell: the cell's own, those of its words and chips, those of its formula, and those that are written out. A text
 * without any is taken as it is where the cell was meant to hold a link.
 */
export function cellLinks(cell: Cell, isMeant: boolean): string[] {
  const text = cell.formattedValue?.trim() ?? '';
  const behind = [
    cell.hyperlink,
    ...(cell.textFormatRuns ?? []).map(({ format }) => format?.link?.uri),
    ...(cell.chipRuns ?? []).map(({ chip }) => chip?.richLinkProperties?.uri),
    ...formulaLinks(cell.userEnteredValue?.formulaValue ?? ''),
  ].filter((url) => url !== undefined && /^https?:/i.test(url)) as string[];
  const found = [...new Set([...behind, ...textLinks(text)])];
  return found.length > 0 || !isMeant || text === '' ? found : [text];
}

function formulaLinks(formula: string): string[] {
  return [...formula.matchAll(linkFormula)].map(([, url = '']) => url.replaceAll('""', '"').trim());
}
