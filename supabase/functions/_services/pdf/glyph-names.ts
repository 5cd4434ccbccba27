import aglfn from 'aglfn/dist/aglfn.json' with { type: 'json' };
import { create } from 'fontkitten';

/** Names of glyphs that lists of letters leave out: ligatures, and what TeX's fonts have. */
const more: Record<string, string> = {
  ff: 'ff',
  fi: 'fi',
  fl: 'fl',
  ffi: 'ffi',
  ffl: 'ffl',
  st: 'st',
  dotlessj: 'ȷ',
  visiblespace: '␣',
  nbspace: ' ',
  negationslash: '̸',
  mapsto: '↦',
  braceex: '⎪',
  ...parts('parenleft', '⎛⎜⎝'),
  ...parts('parenright', '⎞⎟⎠'),
  ...parts('bracketleft', '⎡⎢⎣'),
  ...parts('bracketright', '⎤⎥⎦'),
  ...parts('braceleft', '⎧⎨⎩', 'mid'),
  ...parts('braceright', '⎫⎬⎭', 'mid'),
};
// TeX has signs in several sizes, which are named so.
const sizes = /(?:big|Big|bigg|Bigg|display|text|v)$/;

/** The top, the middle and the bottom of a bracket that is put together. */
function parts(name: string, signs: string, middle = 'ex'): Record<string, string> {
  const [top = '', between = '', bottom = ''] = signs;
  return { [`${name}tp`]: top, [`${name}${middle}`]: between, [`${name}bt`]: bottom };
}

let letters: Map<string, string> | undefined;

/** The letters of a font's glyphs by where the font has them, read from the names that it gives them. */
export function glyphNames(data: Uint8Array): (fontChar: string) => string | undefined {
  let font: ReturnType<typeof create>;
  try {
    font = create(data as never);
  } catch {
    return () => undefined;
  }
  return (fontChar) => {
    try {
      return letterNamed(nameOf(font as unknown as NamedFont, fontChar));
    } catch {
      return undefined;
    }
  };
}

interface NamedFont {
  glyphForCodePoint(point: number): { id: number; name: string | null };
  getGlyph(id: number): { name: string | null };
}

function nameOf(font: NamedFont, fontChar: string): string {
  const { id } = font.glyphForCodePoint(fontChar.codePointAt(0) ?? 0);
  if (id === 0) return '';
  // Into fonts of Type 1 pdf.js writes the names from .notdef on, whose place is another: all stand one too late.
  const isLate = font.getGlyph(1).name === '.notdef';
  return font.getGlyph(isLate ? id + 1 : id).name ?? '';
}

/** The letter of a glyph's name by Adobe's rules: variants end after a point, parts are joined by underscores. */
function letterNamed(name: string): string | undefined {
  letters ??= new Map(
    aglfn.map(({ glyphName, unicodeValue }: { glyphName: string; unicodeValue: string }) => [
      glyphName,
      String.fromCodePoint(Number.parseInt(unicodeValue, 16)),
    ]),
  );
  const [base = ''] = name.split('.');
  if (base === '') return undefined;
  const parts = base.split('_').map((part) => letterOfPart(part, letters ?? new Map()));
  return parts.includes(undefined) ? undefined : parts.join('');
}

function letterOfPart(part: string, known: Map<string, string>): string | undefined {
  const hex = /^(?:uni((?:[0-9A-F]{4})+)|u([0-9A-F]{4,6}))$/.exec(part);
  if (hex) {
    const codes = hex[1]?.match(/.{4}/g) ?? [hex[2] ?? ''];
    return codes.map((code) => String.fromCodePoint(Math.min(Number.parseInt(code, 16), 0x10ffff))).join('');
  }
  return more[part] ?? known.get(part) ?? known.get(part.replace(sizes, ''));
}
