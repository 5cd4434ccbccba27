import { type DrawingSteps, type Matrix, multiply } from './pdf-images.ts';
import { letterOf, type PdfFont, type PdfGlyph } from './pdf-letters.ts';
import { hasRightToLeft } from './reading-order.ts';

/** A piece of text that stands in one row, as the file paints it. Lengths are in points, from the page's top left corner. */
export interface PdfPiece {
  /**
   * From where the writing begins to where it ends, as it is painted: Hebrew and Arabic stand backwards. Empty where the text of
   * these glyphs stands in the piece before.
   */
  text: string;
  x: number;
  y: number;
  /** Where the writing goes: [1, 0] is to the right, [0, 1] downwards. */
  direction: [number, number];
  width: number;
  /** Of the letters. */
  size: number;
}

/** A page's text, with how many of its letters nothing tells. */
export interface PdfText {
  pieces: PdfPiece[];
  letters: number;
  /** Each stands as U+FFFD in the pieces, but for those of fonts that cannot be opened. */
  unread: number;
  /** How many letters may be others, since the file gives them a text that cannot be read. */
  doubtful: number;
}

interface TextState {
  matrix: Matrix;
  font: string;
  size: number;
  letterSpacing: number;
  wordSpacing: number;
  /** Of the letters' width. */
  stretch: number;
  leading: number;
  rise: number;
}

// In sizes of the letters. Less than a blank is a matter of setting, and a jump begins another piece.
const blank = 0.102;
const jump = 1.5;
const jumpBack = -0.3;

/** Follows what pdf.js paints, and gathers the text. `pageTransform` leads to the top left corner, `ops` are pdf.js's OPS. */
export function readPieces(
  { fnArray, argsArray }: DrawingSteps,
  pageTransform: number[],
  ops: Record<string, number>,
  fontOf: (name: string) => PdfFont,
): PdfText {
  const text: PdfText = { pieces: [], letters: 0, unread: 0, doubtful: 0 };
  const start = Array.from(pageTransform) as Matrix;
  let state: TextState = { ...plain, matrix: start };
  const outer: TextState[] = [];
  let line: Matrix = identity;
  let at: Matrix = identity;
  const move = (x: number, y: number) => {
    line = multiply(line, [1, 0, 0, 1, x, y]);
    at = line;
  };
  const open = (...matrices: unknown[]) => {
    outer.push(state);
    state = { ...state, matrix: matrices.filter(Boolean).reduce<Matrix>(multiply, state.matrix) };
  };
  const close = () => {
    state = outer.pop() ?? state;
  };
  const steps: Record<string, (args: unknown[]) => void> = {
    save: () => open(),
    restore: close,
    transform: (args) => (state = { ...state, matrix: multiply(state.matrix, args) }),
    paintFormXObjectBegin: ([matrix]) => open(matrix),
    paintFormXObjectEnd: close,
    beginAnnotation: ([, , transform, matrix]) => {
      open();
      state.matrix = [transform, matrix].filter(Boolean).reduce<Matrix>(multiply, start);
    },
    endAnnotation: close,
    beginText: () => (line = at = identity),
    setTextMatrix: (args) =>
      (line = at = Array.from((args.length < 6 ? args[0] : args) as ArrayLike<number>) as Matrix),
    moveText: ([x, y]) => move(Number(x), Number(y)),
    setLeadingMoveText: ([x, y]) => {
      state = { ...state, leading: -Number(y) };
      move(Number(x), Number(y));
    },
    nextLine: () => move(0, -state.leading),
    setLeading: ([leading]) => (state = { ...state, leading: Number(leading) }),
    setCharSpacing: ([spacing]) => (state = { ...state, letterSpacing: Number(spacing) }),
    setWordSpacing: ([spacing]) => (state = { ...state, wordSpacing: Number(spacing) }),
    setHScale: ([percent]) => (state = { ...state, stretch: Number(percent) / 100 }),
    setTextRise: ([rise]) => (state = { ...state, rise: Number(rise) }),
    setFont: ([font, size]) => (state = { ...state, font: String(font), size: Number(size) }),
    setGState: ([settings]) => {
      for (const [key, value] of settings as [string, unknown][]) {
        if (key === 'Font')
          state = { ...state, font: String((value as unknown[])[0]), size: Number((value as unknown[])[1]) };
      }
    },
    showText: ([glyphs]) => {
      at = show(glyphs as (PdfGlyph | number)[], fontOf(state.font), state, at, text);
    },
  };
  const byOp = new Map(Object.entries(steps).map(([name, step]) => [ops[name], step]));
  for (const [index, op] of fnArray.entries()) {
    const args = argsArray[index] ?? [];
    byOp.get(op)?.((Array.isArray(args) ? args : Array.from(args as ArrayLike<unknown>)) as unknown[]);
  }
  return text;
}

const identity: Matrix = [1, 0, 0, 1, 0, 0];
const plain = { font: '', size: 0, letterSpacing: 0, wordSpacing: 0, stretch: 1, leading: 0, rise: 0 };

/** Adds what is painted from a place on, and returns the place behind it. */
function show(glyphs: (PdfGlyph | number)[], font: PdfFont, state: TextState, at: Matrix, text: PdfText): Matrix {
  // A font that cannot be opened gives no glyphs: at least one letter is lost.
  if (font.isBroken) text.unread++;
  const { size, stretch } = state;
  const em = Math.abs(size) || 1;
  const across = font.isVertical ? 1 : stretch;
  // From the units of text space that the pen has moved to where it stands.
  const placeOf = (pen: number): Matrix =>
    multiply(at, font.isVertical ? [1, 0, 0, 1, 0, -pen] : [1, 0, 0, 1, pen * stretch, 0]);
  let pen = 0;
  let end = 0;
  let lead = '';
  let piece: { start: number; text: string } | null = null;
  const spacingOf = ({ isSpace }: PdfGlyph) =>
    (font.isVertical ? -1 : 1) * (state.letterSpacing + (isSpace ? state.wordSpacing : 0));
  const close = () => {
    if (piece && piece.text.trim() !== '') {
      const { start, text: painted } = piece;
      text.pieces.push(placed(painted, placeOf(start), (end - start) * across, font, state));
    }
    piece = null;
    lead = '';
  };
  for (const glyph of glyphs) {
    if (typeof glyph === 'number') {
      pen += ((font.isVertical ? 1 : -1) * glyph * size) / 1000;
      continue;
    }
    if (!glyph) continue;
    const gap = (pen - end) / em;
    const { letter, isUnread } = letterOf(glyph, font);
    const width = (font.isVertical ? -(glyph.vmetric?.[0] ?? -1000) : glyph.width) * font.unit * size;
    if (glyph.actual === '') {
      if (!piece) text.pieces.push(placed('', placeOf(pen), width * across, font, state));
      text.letters++;
      pen += width + spacingOf(glyph);
      end = pen;
      continue;
    }
    const isBlank = letter.trim() === '';
    if (piece && (gap > jump || gap < jumpBack)) close();
    // Words that are painted backwards are pieces of their own: between them may stand what another font paints, such as a comma.
    if (piece && (gap > blank || isBlank) && hasRightToLeft(piece.text)) close();
    if (!isBlank) text.letters++;
    if (isUnread) text.unread++;
    else if (glyph.isDoubtful && !isBlank) text.doubtful++;
    if (piece) piece.text += (gap > blank && !/^\p{M}/u.test(letter) ? ' ' : '') + letter;
    // A piece begins where its first letter stands, with the blank right before it.
    else if (isBlank) lead = ' ';
    else piece = { start: pen, text: (gap > blank ? '' : lead) + letter };
    pen += width + spacingOf(glyph);
    // A mark is painted over the letter before it, whose place it does not end.
    end = /^\p{M}/u.test(letter) ? Math.max(end, pen) : pen;
  }
  close();
  return placeOf(pen);
}

function placed(
  painted: string,
  at: Matrix,
  width: number,
  font: PdfFont,
  { matrix, size, rise }: TextState,
): PdfPiece {
  const [a, b, c, d, x, y] = multiply(multiply(matrix, at), [1, 0, 0, 1, 0, rise]);
  const [along, down] = font.isVertical ? [-c, -d] : [a, b];
  const length = Math.hypot(along, down) || 1;
  const sign = Math.sign(size) || 1;
  return {
    text: painted,
    x,
    y,
    direction: [(sign * along) / length, (sign * down) / length],
    width: Math.abs(width) * length,
    size: Math.hypot(c, d) * Math.abs(size),
  };
}
