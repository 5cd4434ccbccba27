import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { deflateSync } from 'node:zlib';
import { degrees, PDFDocument } from '@cantoo/pdf-lib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { denoBinary } from '../../local/platform/binaries.ts';
import { cMapsOf, collections } from '../../supabase/functions/_services/pdf/cmap-names.ts';
import { openPdf, type Pdf, sniffDocument } from '../../supabase/functions/_services/pdf/pdf.ts';
import { CMapReader } from '../../supabase/functions/_services/pdf/read-cmaps.ts';
import { readingOrder } from '../../supabase/functions/_services/pdf/reading-order.ts';
import { looksLikeText } from '../../supabase/functions/_services/text/text-quality.ts';
import {
  lockedPdf,
  makePdf,
  pageSize,
  pictureOf,
  pngHeader,
  scannedPdf,
  textPdf,
} from '../support/examples/documents.ts';
import { encodedFont, rawPdf, streamOf } from '../support/examples/raw-pdf.ts';

const rows = [
  { text: 'Chapter One', x: 60, y: 80, size: 20 },
  { text: 'The ferry leaves at seven and comes', x: 60, y: 120, size: 11 },
  { text: 'back before noon, whatever the tide.', x: 60, y: 134, size: 11 },
  { text: 'Nobody ever missed it twice.', x: 60, y: 170, size: 11 },
  { text: '7', x: 205, y: 560, size: 9 },
];

async function opened(bytes: Uint8Array): Promise<Pdf> {
  const pdf = await openPdf(bytes);
  onTestFinished(() => pdf.close());
  return pdf;
}

describe('the text layer', () => {
  test('comes in lines with the size and place of their letters, counted from the top', async () => {
    const pdf = await opened(await textPdf([], rows));
    expect(pdf.pageCount).toBe(2);
    const page = await pdf.pageText(2);
    expect(page.lines).toEqual(rows);
    expect(page).toMatchObject({ width: pageSize[0], height: pageSize[1], coversPageByImage: false });
  });

  test('has an empty line where a gap is wider than others', async () => {
    const page = await (await opened(await textPdf(rows))).pageText(1);
    const [heading, first, second, third, number] = rows.map(({ text }) => text);
    expect(page.text).toBe([heading, '', first, second, '', third, '', number].join('\n'));
  });

  test('joins what stands in one line, as a heading and its page number do', async () => {
    const at = (text: string, x: number, y: number) => ({ text, x, y, size: 10 });
    const page = await (
      await opened(await textPdf([at('Winding', 60, 100), at('it', 98, 100), at('4', 350, 100), at('Oil', 60, 108)]))
    ).pageText(1);
    expect(page.lines.map(({ text }) => text)).toEqual(['Winding it 4', 'Oil']);
  });

  test('of a blank page and of a scan is empty', async () => {
    const blank = await (await opened(await textPdf([]))).pageText(1);
    expect(blank).toMatchObject({ text: '', lines: [], coversPageByImage: false });
    const scan = await (await opened(await scannedPdf(rows))).pageText(1);
    expect(scan).toMatchObject({ text: '', lines: [], coversPageByImage: true });
  });
});

describe('a page counts as covered by images', () => {
  const [width, height] = pageSize;
  const cases: [string, boolean, Parameters<typeof makePdf>[1]][] = [
    ['when it has a text layer beside the scan', true, (pages, pdf) => scan(pages, pdf, { width, height }, 'Text.')],
    ['when the scan lies sideways', true, (pages, pdf) => scan(pages, pdf, { x: width, width: height, height: width })],
    ['when the scan is cut into strips', true, (pages, pdf) => strips(pages, pdf, 4)],
    ['not when it has a picture on half of it', false, (pages, pdf) => scan(pages, pdf, { width, height: height / 2 })],
    ['not when half of the image lies beside it', false, (pages, pdf) => scan(pages, pdf, { x: 210, width, height })],
    ['not when its ground is painted', false, (pages) => pages[0]?.drawRectangle({ width, height })],
  ];

  test.each(cases)('%s', async (_, expected, draw) => {
    const page = await (await opened(await makePdf(1, draw))).pageText(1);
    expect(page.coversPageByImage).toBe(expected);
  });

  test('when the scan lies in a form of its own', async () => {
    const inner = await PDFDocument.load(await scannedPdf(rows));
    const bytes = await makePdf(1, async ([page], pdf) => {
      const [form] = await pdf.embedPdf(inner);
      if (form) page?.drawPage(form, { x: 0, y: 0, width, height });
    });
    expect((await (await opened(bytes)).pageText(1)).coversPageByImage).toBe(true);
  });

  async function scan(
    [page]: Parameters<Parameters<typeof makePdf>[1]>[0],
    pdf: PDFDocument,
    place: { x?: number; width: number; height: number },
    text?: string,
  ) {
    const image = await pdf.embedPng(await pictureOf([], 0.1).encode('png'));
    const isSideways = place.width > width;
    page?.drawImage(image, { x: 0, y: 0, ...place, rotate: degrees(isSideways ? 90 : 0) });
    if (text) page?.drawText(text, { x: 50, y: 300 });
  }

  async function strips([page]: Parameters<Parameters<typeof makePdf>[1]>[0], pdf: PDFDocument, count: number) {
    const image = await pdf.embedPng(await pictureOf([], 0.1).encode('png'));
    const strip = height / count;
    for (let at = 0; at < count; at++) page?.drawImage(image, { x: 0, y: at * strip, width, height: strip });
  }
});

describe('a letter', () => {
  const own = { 1: 's', 2: 'f_f_i', 3: 'uni0416', 4: 'eacute', 5: 'fl' };
  const times = '<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>';

  test('is told by the names that a font gives its glyphs, where nothing else tells it', async () => {
    const text =
      'BT /F1 10 Tf 20 500 Td (\\001\\002) Tj /F2 10 Tf ( see ) Tj /F1 10 Tf [(\\003) -300 (\\004\\005)] TJ ET';
    const bytes = rawPdf(text, { F1: 6, F2: 9 }, [...encodedFont(own, 6), times]);
    expect(await (await opened(bytes)).pageText(1)).toMatchObject({
      text: 'sffi see Ж éfl',
      unread: 0,
    });
  });

  test('that nothing tells is counted and stands as U+FFFD, and over one in 1,000 makes a page doubtful', async () => {
    const bytes = (count: number) => {
      const words = 'whatever the tide '.repeat(count);
      const text = `BT /F2 10 Tf 20 500 Td (${words}) Tj /F1 10 Tf (\\001) Tj ET`;
      return rawPdf(text, { F1: 6, F2: 9 }, [...encodedFont({ 1: 'a99' }, 6), times]);
    };
    const doubtful = await (await opened(bytes(10))).pageText(1);
    expect(doubtful).toMatchObject({ unread: 1, text: expect.stringContaining('\ufffd') });
    expect(doubtful.quality).toBeLessThan(0.7);
    const good = await (await opened(bytes(100))).pageText(1);
    expect(good.unread).toBe(1);
    expect(good.quality).toBeGreaterThan(0.9);
  });

  test.each([
    ['a CMap that nobody knows', '/Subtype /Type0 /BaseFont /Lost /Encoding /Nonsense-H /DescendantFonts [7 0 R]'],
    ['nothing that it can be made of', '/Subtype /Type0 /BaseFont /Lost /Encoding /Identity-H'],
  ])('of a font with %s makes no page a blank one', async (_, lost) => {
    const system = '/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 4 >>';
    const inner = `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Lost ${system} >>`;
    const bytes = rawPdf('BT /F1 9 Tf 9 9 Td <0001> Tj ET', { F1: 6 }, [`<< /Type /Font ${lost} >>`, inner]);
    const pdf = await opened(bytes);
    expect(await pdf.isBlank(1)).toBe(false);
    expect((await pdf.pageLines(1)).unread).toBeGreaterThan(0);
  });

  test.each([
    ['UniGB-UCS2-H', '00410042672c4eba', 'AB本人'],
    ['UniCNS-UTF16-H', '00410042672c4ebad840dc0b', 'AB本人\u{2000b}'],
    ['UniJIS-UCS2-HW-H', '00410042672c4eba', 'AB本人'],
    ['UniJIS2004-UTF16-H', '00410042672c4ebad840dc0b', 'AB本人\u{2000b}'],
    ['UniKS-UTF16-V', '00410042672c4ebad840dc0b', 'AB本人\u{2000b}'],
    ['GBK-EUC-H', '4142b1bec8cb', 'AB本人'],
    ['GBKp-EUC-V', '4142b1bec8cb', 'AB本人'],
    ['GBK2K-H', '4142b1bec8cb95328337', 'AB本人\u{2000b}'],
  ])('whose code is that of a charset is read without a table: %s', async (name, codes, read) => {
    const system = '/CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 4 >>';
    const flags = '/Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 880 /Descent -120 /StemV 80';
    const pdf = await opened(
      rawPdf(`BT /F1 9 Tf 20 500 Td <${codes}> Tj ET`, { F1: 6 }, [
        `<< /Type /Font /Subtype /Type0 /BaseFont /Song /Encoding /${name} /DescendantFonts [7 0 R] >>`,
        `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Song ${system} /FontDescriptor 8 0 R /DW 1000 >>`,
        `<< /Type /FontDescriptor /FontName /Song ${flags} >>`,
      ]),
    );
    const { text, unread } = await pdf.pageText(1);
    expect({ text: text.replaceAll(/\s/g, ''), unread }).toEqual({ text: read, unread: 0 });
  });

  describe('of a joined script', () => {
    const system = '/CIDSystemInfo << /Registry (Adobe) /Ordering (CNS1) /Supplement 4 >>';
    const flags = '/Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 880 /Descent -120 /StemV 80';
    const fonts = [
      '<< /Type /Font /Subtype /Type0 /BaseFont /Own /Encoding /UniCNS-UTF16-H /DescendantFonts [7 0 R] >>',
      `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Own ${system} /FontDescriptor 8 0 R /DW 1000 >>`,
      `<< /Type /FontDescriptor /FontName /Own ${flags} >>`,
    ];
    const shown = (codes: string) => `BT /F1 10 Tf 20 500 Td ${codes} ET`;
    // The vowel i is painted before the letter that it follows.
    const replaced = (text: string) => `/Span <</ActualText ${text}>> BDC <093f> Tj [20 <0939> -10] TJ EMC <0928> Tj`;
    const page = async (painted: string | Uint8Array) => (await opened(rawPdf(painted, { F1: 6 }, fonts))).pageText(1);

    test.each([
      ['UTF-16', '<FEFF 0939 093F>'],
      ['UTF-16 with its language', '<FEFF 001B 0068 0069 001B 0939 093F>'],
      ['UTF-8, as a literal string', '(\\357\\273\\277\\340\\244\\271\\340\\244\\277)'],
    ])('is the one that the file gives for its glyphs, in %s', async (_, text) => {
      expect(await page(shown(replaced(text)))).toMatchObject({ text: 'हिन', letters: 3, doubtful: 0 });
    });

    test('is found in a compressed stream, behind a picture of its own', async () => {
      const content = `q BI /W 1 /H 1 /BPC 8 /CS /G ID \u0001 EI Q ${shown(replaced('<FEFF0939093F>'))}`;
      const packed = streamOf(deflateSync(Buffer.from(content, 'latin1')), '/Filter /FlateDecode');
      expect((await page(packed)).text).toBe('हिन');
    });

    test.each([
      ['the file gives a text in another charset', replaced('(\\371)'), 2],
      ['the file gives no texts at all', '<093f> Tj <0939> Tj <0928> Tj', 3],
    ])('is doubtful where %s', async (_, codes, doubtful) => {
      const read = await page(shown(codes));
      expect(read).toMatchObject({ letters: 3, doubtful, unread: 0 });
      expect(read.quality).toBeLessThanOrEqual(0.5);
    });

    test('is doubtful in a compression that is not read', async () => {
      const hex = Buffer.from(shown(replaced('<FEFF0939093F>'))).toString('hex');
      expect(await page(streamOf(hex, '/Filter /ASCIIHexDecode'))).toMatchObject({ letters: 3, doubtful: 3 });
    });

    test('has no gap before its marks', async () => {
      const mark = '/Span <</ActualText <FEFF0915>>> BDC <0915> Tj EMC [<0915> 1220 <0941> -220 <0928>] TJ';
      expect((await page(shown(mark))).text).toBe('ककुन');
    });
  });

  test('of Chinese, Japanese and Korean is told by the CMaps of pdfjs-dist, all that PDF predefines', async () => {
    const source = path.join(import.meta.dirname, '../../node_modules/pdfjs-dist/cmaps');
    for (const collection of collections) {
      const [first = '', ...others] = cMapsOf(collection);
      for (const name of [first, others.at(-1) ?? '']) {
        const { cMapData } = await new CMapReader().fetch({ name });
        expect(Buffer.from(cMapData).equals(readFileSync(path.join(source, `${name}.bcmap`))), name).toBe(true);
      }
    }
    await expect(new CMapReader().fetch({ name: 'Nonsense-H' })).rejects.toThrow(/Nonsense-H/);
  });
});

test.each([
  ['words of Hebrew', 'ןאכ םלוע םולש', 'שלום עולם כאן'],
  ['numbers and Latin words among them', '.12:30 העשב PDF םלוע', 'עולם PDF בשעה 12:30.'],
  ['a Hebrew word in an English line', 'The word םולש means peace.', 'The word שלום means peace.'],
  ['Arabic', 'ملاع ابحرم', 'مرحبا عالم'],
])('a line is put in the order of reading: %s', (_, painted, read) => {
  expect(readingOrder(painted)).toBe(read);
});

test.each([
  ['padding', new Uint8Array(5000)],
  ['a second end mark', bytesOf('\r\n%%EOF\r\n')],
  ['a mail’s footer', bytesOf(`\n--boundary--\n${'Sent from afar. '.repeat(300)}`)],
])('a PDF is read whatever stands behind its end: %s', async (_, more) => {
  const bytes = new Uint8Array(Buffer.concat([await textPdf(rows), more]));
  expect((await (await opened(bytes)).pageText(1)).lines).toEqual(rows);
});

describe('a file that cannot be read is refused for good, with what to do about it', () => {
  const whole = textPdf(rows);
  test.each<[string, () => Promise<Uint8Array> | Uint8Array, string, RegExp]>([
    ['an empty file', () => new Uint8Array(), 'empty_document', /upload it again/],
    ['an encrypted PDF', lockedPdf, 'encrypted_document', /upload it without one/],
    ['a PDF cut off', async () => (await whole).slice(0, 700), 'damaged_document', /%%EOF: upload the whole file/],
    [
      'an update cut off',
      async () => new Uint8Array(Buffer.concat([await whole, bytesOf('\n7 0 obj\n<< /Type')])),
      'damaged_document',
      /%%EOF/,
    ],
    ['a PDF of which only the marks are left', () => bytesOf('%PDF-1.7\nnothing\n%%EOF'), 'damaged_document', /upload/],
    ['an image called PDF', () => pngHeader(10, 10), 'unsupported_type', /an image: upload a PDF/],
    ['text called PDF', () => bytesOf('Once upon a time'), 'unsupported_type', /text: upload a PDF/],
    ['a web archive called PDF', () => bytesOf('PK\u0003\u0004xxxx'), 'unsupported_type', /something unknown/],
  ])('%s', async (_, make, code, message) => {
    const error = await openPdf(await make()).catch((thrown) => thrown);
    expect(error).toMatchObject({ code, permanent: true, message: expect.stringMatching(message) });
  });

  test.each([0, 2, 1.5])('page %s of one', async (number) => {
    const pdf = await opened(await textPdf(rows));
    await expect(pdf.pageText(number)).rejects.toMatchObject({ code: 'no_such_page', permanent: true });
  });
});

test.each([
  ['pdf', bytesOf('%PDF-1.4')],
  ['pdf', bytesOf('From: me@example.com\r\n\r\n%PDF-1.4')],
  ['image', pngHeader(1, 1)],
  ['image', Uint8Array.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46])],
  ['text', bytesOf('Déjà vu, as they say.\n')],
  ['text', Buffer.from('Déjà vu', 'latin1')],
  ['text', Buffer.from('\ufeffDéjà vu', 'utf16le')],
  ['unknown', Buffer.from('\ufeffDéjà\u0000vu', 'utf16le')],
  ['text', bytesOf(`${'a'.repeat(64 * 1024 - 1)}é`)],
  ['unknown', new Uint8Array()],
  ['unknown', Uint8Array.from([1, 2, 3, 0, 255])],
])('a document is %s by its bytes', async (kind, bytes) => {
  expect(await sniffDocument(bytes)).toBe(kind);
});

describe('a text layer', () => {
  test.each([
    'The ferry leaves at seven, and comes back before noon.',
    'PART ONE',
    'Preface . . . . . . . . . . . . . iv\n1 Where a Clock Should Stand . . . 1\n2 Winding........ 4',
    'Größe, Kürze und Würze: 12 % für 3,50 €.',
    'Die Donaudampfschifffahrtsgesellschaft war’s nicht.',
    'Мельница стоит у реки.',
    'L’œuvre de l’abbé, vol. IV, pp. 12–19.',
    'currentprojection=orthographic(5,4,center=true); size3(3cm,5cm); draw(unitbox); label("$O$",(0,0,0),NW); dot(unitbox,red);',
    'این جمله\u200cای به زبان فارسی است که می\u200cخواهد نیم\u200cفاصله را نشان دهد.',
    'བོད་སྐད་ཀྱི་ཚིག་འདི་ སྒྲ་ བརྒྱད་ རྐྱེན་ སྤྱོད་ལམ།',
  ])('is taken for what stands on the page: %s', (text) => {
    expect(looksLikeText(text)).toBe(true);
  });

  test.each([
    '',
    ' \n ',
    shifted('The ferry leaves at seven and comes back before noon, whatever the tide says.'),
    '(cid:12)(cid:34)(cid:7) (cid:88)(cid:3)',
    '\ue001\ue002\ue003 \ue004\ue005',
    'bcdfg hjklmn pqrstv wxzbc dfghj klmnp',
    // Other letters stand for each, with as many vowels as in a language.
    'Aol mlyyf slhclz aol ohyivby ha zlclu huk jvtlz ihjr ilmvyl uvvu, dohalcly aol apkl zhfz; aol zthss ivhaz dhpa mvy pa pu aol ohyivby.',
    'kyhd(bupaive,ylk);kva(jvyuly,isbl);shils(wvzpapvu,"uvyao dlza");zpgl3(dpkao,olpnoa);whao jpyjsl=zopma(vypnpu)*bupajpyjsl;',
    '�� ��� ����',
    '|| .~ ,;: _/ ^^ `` {} [] <> == ++',
  ])('is taken for rubbish: %s', (text) => {
    expect(looksLikeText(text)).toBe(false);
  });
});

test('Deno reads a page within a function’s memory, and opening a document takes little of its second of CPU', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-pdf-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'book.pdf');
  writeFileSync(file, await makeBook());
  const functions = path.join(import.meta.dirname, '../../supabase/functions');
  const script = `
    import process from 'node:process';
    const { openPdf } = await import('file://${functions}/_services/pdf/pdf.ts');
    const pdf = await openPdf(Deno.readFileSync('${file}'));
    const first = await pdf.pageText(1);
    const last = await pdf.pageText(pdf.pageCount);
    const { user, system } = process.cpuUsage();
    const cpuMs = (user + system) / 1000;
    console.log(JSON.stringify({ text: first.text, scan: last.coversPageByImage, cpuMs, rss: Deno.memoryUsage().rss }));
  `;
  const args = ['eval', '--no-lock', '--node-modules-dir=manual', '--config', path.join(functions, 'deno.json')];
  const { stdout } = await promisify(execFile)(denoBinary(), [...args, script], { cwd: functions });
  const read = JSON.parse(stdout);
  expect(read.text).toContain('The ferry leaves at seven');
  expect(read.scan).toBe(true);
  expect(read.rss).toBeLessThan(200 * 1024 * 1024);
  // A quarter of a second, loading included. Where others compete for the processor it takes more: npm run soak -- pdf.
  if (process.env.SOAK) expect(read.cpuMs).toBeLessThan(1000);
});

function makeBook(): Promise<Uint8Array> {
  return makePdf(40, async (pages, pdf) => {
    for (const page of pages.slice(0, -1)) for (const { text, x, y } of rows) page.drawText(text, { x, y });
    const image = await pdf.embedJpg(await pictureOf(rows, 4).encode('jpeg'));
    pages.at(-1)?.drawImage(image, { width: pageSize[0], height: pageSize[1] });
  });
}

/** The text of a font whose letters are numbered in an order of its own. */
function shifted(text: string): string {
  return text.replace(/\S/g, (letter) => String.fromCharCode(letter.charCodeAt(0) - 29));
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
