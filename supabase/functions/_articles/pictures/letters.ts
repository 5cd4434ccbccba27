// Letters of five columns and seven rows. A row is a digit of base 32, whose highest bit is the column to the left.
const drawn =
  'Aehhvhhh Buhhuhhu Cehggghe Duhhhhhu Evgguggv Fvgguggg Gehgnhhf Hhhhvhhh Ie44444e J72222ic Khikokih Lggggggv Mhrllhhh Nhhpljhh ' +
  'Oehhhhhe Puhhuggg Qehhhlid Ruhhukih Sfgge11u Tv444444 Uhhhhhhe Vhhhhha4 Whhhllla Xhha4ahh Yhha4444 Zv1248gv ' +
  '0ehjlphe 14c4444e 2eh1248v 3v2421he 426aiv22 5vgu11he 668guhhe 7v124888 8ehhehhe 9ehhf12c ' +
  "-000v000 .00000cc ,0000c48 'c480000 :0cc0cc0 !4444004 ?eh12404 &cik8lid /01248g0 (2488842 )8422248 %op248j3 +044v440";

const glyphs = new Map(
  drawn.split(' ').map((glyph) => [glyph[0], [...glyph.slice(1)].map((row) => Number.parseInt(row, 32))]),
);

export const glyphWidth = 5;
export const glyphHeight = 7;

/** The seven rows of a letter, each a number of five bits; null for one that cannot be drawn. */
export function glyphOf(letter: string): readonly number[] | null {
  return glyphs.get(letter) ?? null;
}

/** A text in the letters that can be drawn, accents left out; empty where most of its letters cannot be. */
export function drawableText(text: string): string {
  const letters = [
    ...text
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .replace(/[‘’]/g, "'")
      .replace(/\p{Pd}/gu, '-')
      .toUpperCase(),
  ];
  const wanted = letters.filter((letter) => /[\p{L}\p{N}]/u.test(letter));
  const missing = wanted.filter((letter) => !glyphs.has(letter));
  if (missing.length * 5 > wanted.length) return '';
  return letters
    .map((letter) => (glyphs.has(letter) ? letter : ' '))
    .join('')
    .replace(/\s+/g, ' ')
    .trim();
}
