import { normalForm } from '../text/normal-form.ts';

/** A glyph as pdf.js paints it. */
export interface PdfGlyph {
  originalCharCode: number;
  /** The letter by pdf.js; the character of the glyph's code where nothing tells. */
  unicode: string;
  /** Where the font that pdf.js made has it. */
  fontChar: string;
  width: number;
  vmetric?: number[] | null;
  isSpace: boolean;
  /** The text that the file gives for this glyph and those after it, whose own is empty. */
  actual?: string;
  /** Whether the file may give another text for it, which cannot be read. */
  isDoubtful?: boolean;
}

/** A font, with what tells the letters of its glyphs. */
export interface PdfFont {
  isVertical: boolean;
  /** Whether it could not be opened, so that its text is lost. */
  isBroken: boolean;
  /** Whether its glyphs are pieces of lines and arrows that TeX draws with. */
  isDrawing: boolean;
  /** Sizes of the letters in one unit of its glyphs. */
  unit: number;
  /** The letter of a code, where the codes are those of a charset. */
  readCode: ((code: number) => string) | undefined;
  /** Whether its codes stand for glyphs alone, and nothing in the file leads from them to letters. */
  isNameless: boolean;
  /** Whether the file says which letter a code stands for. */
  isTold(code: number): boolean;
  /** The letter of a glyph by its name in the font; none where the font has no names, or none that says a letter. */
  nameOf(fontChar: string): string | undefined;
  letters: Map<number, ReadLetter>;
}

/** A glyph's letter in the text; U+FFFD where it is unknown. */
export interface ReadLetter {
  letter: string;
  isUnread: boolean;
}

const unreadLetter = '\ufffd';
// Control characters and places for private use are no letters.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const noLetter = /^[\u0000-\u001f\u007f-\u009f\ue000-\uf8ff\ufff0-\uffff]/;
/** Where symbol fonts have bullets and ticks, as Word writes them. */
const symbols: Record<string, string> = {
  '\uf0b7': '•',
  '\uf0a7': '▪',
  '\uf0d8': '➢',
  '\uf0fc': '✓',
  '\uf06e': '■',
  '\uf02d': '-',
};
// Forms of letters that stand for one or several letters of the alphabet.
const forms = /[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]/;
/**
 * Scripts whose letters are joined, and whose vowels may stand before the letter that they follow: glyphs of a font are not letters.
 */
export const joinedScripts =
  /[\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Script=Balinese}\p{Script=Javanese}]/u;
const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** The letter that a glyph stands for: as the file says, else by the glyph's name. */
export function letterOf(glyph: PdfGlyph, font: PdfFont): ReadLetter {
  if (glyph.actual !== undefined) return { letter: paintedOrder(glyph.actual), isUnread: false };
  if (font.isDrawing) return { letter: ' ', isUnread: false };
  const code = glyph.originalCharCode;
  const known = font.letters.get(code);
  if (known) return known;
  const read = readLetter(glyph, font);
  font.letters.set(code, read);
  return read;
}

/** Whether only the glyph's name can tell its letter. */
export function needsName({ originalCharCode: code, unicode, isSpace }: PdfGlyph, font: PdfFont): boolean {
  if (isSpace) return false;
  return !font.isTold(code) || (noLetter.test(unicode) && !(unicode in symbols));
}

function readLetter(glyph: PdfGlyph, font: PdfFont): ReadLetter {
  const { originalCharCode: code } = glyph;
  const unicode = font.readCode?.(code) ?? glyph.unicode;
  const named = needsName(glyph, font) ? font.nameOf(glyph.fontChar) : undefined;
  const raw = named ?? symbols[unicode] ?? unicode;
  const isTold = named !== undefined || font.isTold(code) || glyph.isSpace;
  if ((noLetter.test(raw) && !(isTold && raw.trim() === '')) || (!isTold && font.isNameless)) {
    return { letter: unreadLetter, isUnread: true };
  }
  const letter = forms.test(raw) ? normalForm(raw, 'NFKC') : raw;
  const painted = paintedOrder(letter);
  return { letter: painted.trim() === '' ? ' ' : painted, isUnread: false };
}

/** As they are painted: a line is put in order as a whole. */
function paintedOrder(letters: string): string {
  return letters.length > 1 && rightToLeft.test(letters) ? [...letters].reverse().join('') : letters;
}
