// Sets words in lines. Widths are those of the PDF's standard Times, in points.
import { StandardFontEmbedder, StandardFonts } from '@cantoo/pdf-lib';
import type { Word } from './read-manuscript.ts';

export type Face = 'roman' | 'bold' | 'italic';

/** A piece of text at a place: its left end, and its baseline as a distance from the top of the page. */
export interface Piece {
  text: string;
  x: number;
  y: number;
  size: number;
  face: Face;
}

export interface Line {
  pieces: Omit<Piece, 'y'>[];
  words: Word[];
}

export const standardFonts = {
  roman: StandardFonts.TimesRoman,
  bold: StandardFonts.TimesRomanBold,
  italic: StandardFonts.TimesRomanItalic,
} as const;

const metrics = {
  roman: StandardFontEmbedder.for(standardFonts.roman as never),
  bold: StandardFontEmbedder.for(standardFonts.bold as never),
  italic: StandardFontEmbedder.for(standardFonts.italic as never),
};

export function widthOf(text: string, size: number, face: Face): number {
  return metrics[face].widthOfTextAtSize(text, size);
}

/** Breaks words into lines that fit `width`. The first line begins `indent` to the right, all others at `left`. */
export function breakLines(
  words: Word[],
  { left, width, size, indent }: { left: number; width: number; size: number; indent: number },
): Line[] {
  const lines: Line[] = [];
  let line: Word[] = [];
  let used = indent;
  const space = widthOf(' ', size, 'roman');
  const finish = () => {
    lines.push({ words: line, pieces: pieces(line, left + (lines.length === 0 ? indent : 0), size) });
    line = [];
    used = 0;
  };
  for (const word of words) {
    const wide = widthOf(word.text, size, word.bold ? 'bold' : 'roman');
    if (line.length > 0 && used + space + wide > width) finish();
    used += (line.length > 0 ? space : 0) + wide;
    line.push(word);
  }
  if (line.length > 0) finish();
  return lines;
}

/** One piece for each stretch of words in the same face. */
function pieces(words: Word[], left: number, size: number): Line['pieces'] {
  const found: Line['pieces'] = [];
  let x = left;
  for (const { text, bold } of words) {
    const face = bold ? 'bold' : 'roman';
    const last = found.at(-1);
    if (last?.face === face) last.text += ` ${text}`;
    else found.push({ text, x, size, face });
    const current = found.at(-1) as Line['pieces'][number];
    x = current.x + widthOf(`${current.text} `, size, face);
  }
  return found;
}
