import { readerOf } from './cmap-names.ts';
import { needsName, type PdfFont, type PdfGlyph } from './pdf-letters.ts';

/** A font as pdf.js hands it over, with its extra properties. */
interface OpenedFont {
  name?: string;
  vertical?: boolean;
  composite?: boolean;
  fontMatrix?: number[];
  data?: Uint8Array;
  cMap?: { name?: string };
  /** Letters by code; of a font whose codes are glyphs' numbers only the first and the last code. */
  toUnicode?: { _map?: unknown[] | Record<number, unknown> };
}

/** A font as pdf.js hands it over; a message where it could not open the font. */
export type HandedFont = OpenedFont | string | null;

const lettersOfPoints = 0.001;
// With the mark of a subset in front.
const drawing = /^(?:[A-Z]{6}\+)?(?:XY(?:DASH|[AB]TIP|[AB]SQL|CIRC|CM[AB]T|LUAT)|L?LINEW?10|L?CIRCLEW?10)/i;

/** The known properties of a font; none where pdf.js could not open it. */
export function fontFrom(handedFont: HandedFont): PdfFont {
  const handed = opened(handedFont);
  const map = handed?.toUnicode?._map;
  const readCode = readerOf(handed?.cMap?.name);
  return {
    isVertical: handed?.vertical === true,
    isBroken: handed === null,
    isDrawing: drawing.test(handed?.name ?? ''),
    unit: handed?.fontMatrix?.[0] ?? lettersOfPoints,
    readCode,
    isNameless: handed?.composite === true && map === undefined,
    isTold: (code) => readCode !== undefined || (map as Record<number, unknown> | undefined)?.[code] !== undefined,
    nameOf: () => undefined,
    letters: new Map(),
  };
}

/** Reads the names of a font's glyphs, where any of these glyphs needs one. */
export async function nameGlyphs(font: PdfFont, handed: HandedFont, glyphs: Iterable<PdfGlyph>): Promise<void> {
  const data = opened(handed)?.data;
  if (!data) return;
  for (const glyph of glyphs) {
    if (font.letters.has(glyph.originalCharCode) || !needsName(glyph, font)) continue;
    // Both are loaded for the few files that need them.
    const { glyphNames } = await import('./glyph-names.ts');
    font.nameOf = glyphNames(data);
    return;
  }
}

function opened(handed: HandedFont): OpenedFont | null {
  return typeof handed === 'object' && handed && !('error' in handed) ? handed : null;
}
