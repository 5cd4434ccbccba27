import { linksOf } from '../text-links.ts';

/** A cell, as far as it may hold links. */
export interface Cell {
  formattedValue?: string;
  hyperlink?: string;
  textFormatRuns?: { format?: { link?: { uri?: string } } }[];
  chipRuns?: { chip?: { richLinkProperties?: { uri?: string } } }[];
  userEnteredValue?: { formulaValue?: string };
  /** Google's code for a failed formula, independent of the sheet's language. */
  effectiveValue?: { errorValue?: { type?: string } };
}

/** The fields that `cellLinks` reads, as a mask of the API. */
export const cellFields =
  'formattedValue,hyperlink,textFormatRuns/format/link/uri,chipRuns/chip/richLinkProperties/uri,userEnteredValue/formulaValue,' +
  'effectiveValue/errorValue/type';

// A value that was copied from a failed formula is a text.
const errorText =
  /^(?:#(?:n\/[abdt]|i\/t|nv|н\/д|yok|saknas|puuttuu|hiányzik|getting_data|[¡¿]?[\p{L}\p{N}/_]+ ?[!?])|(?:loading|wird geladen|chargement|cargando|caricamento|carregando|laden|загрузка|加载中|読み込み中)[^/]{0,20}(?:\.\.\.|…))$/iu;
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
  const found = linksOf(behind, text);
  return found.length > 0 || !isMeant || text === '' || isBroken(cell) ? found : [text];
}

/** Whether a cell shows that its formula failed, or has not come yet, in any language of Google Sheets. */
export function isBroken({ formattedValue = '', effectiveValue }: Cell): boolean {
  return effectiveValue?.errorValue !== undefined || errorText.test(formattedValue.trim());
}

function formulaLinks(formula: string): string[] {
  return [...formula.matchAll(linkFormula)].map(([, url = '']) => url.replaceAll('""', '"').trim());
}
