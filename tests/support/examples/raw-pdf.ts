// PDFs written object by object, for what no library writes.

/**
 * A PDF of one page: what is painted on it, as text or as a stream object, and its fonts by name. Objects from 6 on are `more`, as
 * text or bytes.
 */
export function rawPdf(
  painted: string | Uint8Array,
  fonts: Record<string, number>,
  more: (string | Uint8Array)[],
): Uint8Array {
  const names = Object.entries(fonts).map(([name, object]) => `/${name} ${object} 0 R`);
  return pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 4 0 R /Resources 5 0 R >>`,
    typeof painted === 'string' ? streamOf(painted) : painted,
    `<< /Font << ${names.join(' ')} >> >>`,
    ...more,
  ]);
}

/** A stream object of text or bytes; `entries` are more of its dictionary. */
export function streamOf(content: string | Uint8Array, entries = ''): Uint8Array {
  const bytes = Buffer.from(content as string, 'latin1');
  return Buffer.concat([
    Buffer.from(`<< /Length ${bytes.length} ${entries} >>\nstream\n`),
    bytes,
    Buffer.from('\nendstream'),
  ]);
}

function pdfOf(objects: (string | Uint8Array)[]): Uint8Array {
  const parts = [Buffer.from('%PDF-1.4\n')];
  const places: number[] = [];
  let length = parts[0]?.length ?? 0;
  for (const [index, object] of objects.entries()) {
    places.push(length);
    const part = Buffer.concat([
      Buffer.from(`${index + 1} 0 obj\n`),
      Buffer.from(object as string, 'latin1'),
      Buffer.from('\nendobj\n'),
    ]);
    parts.push(part);
    length += part.length;
  }
  const table = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('');
  const size = objects.length + 1;
  parts.push(
    Buffer.from(
      `xref\n0 ${size}\n0000000000 65535 f \n${table}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${length}\n%%EOF\n`,
    ),
  );
  return new Uint8Array(Buffer.concat(parts));
}

/** A font of Type 1C whose own encoding alone says which code is which glyph, and its name which letter. */
export function encodedFont(glyphs: Record<number, string>, firstObject: number): (string | Uint8Array)[] {
  const codes = Object.keys(glyphs).map(Number);
  const widths = Array.from({ length: 256 }, () => 500).join(' ');
  const flags =
    '/Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 700 /Descent -200 /CapHeight 700 /StemV 80';
  return [
    `<< /Type /Font /Subtype /Type1 /BaseFont /ABCDEF+Own /FirstChar 0 /LastChar 255 /Widths [${widths}] /FontDescriptor ${firstObject + 1} 0 R >>`,
    `<< /Type /FontDescriptor /FontName /ABCDEF+Own ${flags} /FontFile3 ${firstObject + 2} 0 R >>`,
    streamOf(compactFont(codes, Object.values(glyphs)), '/Subtype /Type1C'),
  ];
}

/** Adobe's Compact Font Format (Technical Note 5176), with empty glyphs and no standard names. */
function compactFont(codes: number[], names: string[]): Uint8Array {
  const firstOwnName = 391;
  const charset = [0, ...names.flatMap((_, index) => uint16(firstOwnName + index))];
  const encoding = [0, codes.length, ...codes];
  const square = [189, 22, 14];
  const charStrings = indexOf([[14], ...names.map(() => square)]);
  const top = (start: number) => [
    ...[...number(start), 15],
    ...[...number(start + charset.length), 16],
    ...[...number(start + charset.length + encoding.length), 17],
    ...[...number(0), ...number(start), 18],
  ];
  const head = (start: number) => [
    ...[1, 0, 4, 1],
    ...indexOf([[...Buffer.from('Own')]]),
    ...indexOf([top(start)]),
    ...indexOf(names.map((name) => [...Buffer.from(name)])),
    ...indexOf([]),
  ];
  return Uint8Array.from([...head(head(0).length), ...charset, ...encoding, ...charStrings]);
}

const uint16 = (value: number) => [value >> 8, value & 255];
/** In the form of five bytes, so that a dictionary is as long whatever it says. */
const number = (value: number) => [29, value >> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255];

function indexOf(items: number[][]): number[] {
  if (items.length === 0) return [0, 0];
  let end = 1;
  const ends = items.map(({ length }) => (end += length));
  return [...uint16(items.length), 2, ...[1, ...ends].flatMap(uint16), ...items.flat()];
}
