// Files of which nobody can have the text: each is refused with what to do about it.
import { strToU8, zipSync } from 'fflate';
import { describe, expect, test } from 'vitest';
import { buildSampleDocx } from '../../local/demo/samples/documents/sample-docx.ts';
import { MAX_DOCX_TEXT_BYTES } from '../../supabase/functions/_documents/docx-text.ts';
import { MAX_PDF_CHARACTERS, MAX_PDF_PAGES } from '../../supabase/functions/_services/pdf/pdf-text.ts';
import { lockedPdf, makePdf, scannedPdf, textPdf } from '../support/examples/documents.ts';
import { blocks, bytesOf, docxOf, odt, paragraph, read, row } from '../support/examples/extracting.ts';

describe('a file that cannot be read is refused for good, with what to do about it:', () => {
  const docx = new Uint8Array(buildSampleDocx(blocks));
  const oldOffice = (text: string) =>
    Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600), Buffer.from(text, 'utf16le')]);
  const tooMany = 'x'.repeat(100);
  const line = { start: { x: 60, y: 60 }, end: { x: 200, y: 200 } };
  test.each<[string, () => Uint8Array | Promise<Uint8Array>, string, RegExp]>([
    ['an empty file', () => new Uint8Array(), 'empty_document', /upload it again/],
    ['a blank one', () => bytesOf(' \r\n\f \n'), 'no_text', /no text/],
    [
      'a page without text',
      () => bytesOf('<html><title>x</title><body><script>x</script><img></body>'),
      'no_text',
      /no text/,
    ],
    ['a Word document without text', () => docxOf(paragraph(' ')), 'no_text', /no text/],
    ['a scan', () => scannedPdf([row('Seen only', 60)]), 'no_text_layer', /books pipelines.*upload each page as PNG/],
    ['a PDF of blank pages', () => makePdf(2, () => {}), 'no_text', /blank.*upload another/],
    ['a PDF with a drawing only', () => makePdf(2, ([, page]) => page?.drawLine(line)), 'no_text_layer', /books/],
    ['an encrypted PDF', lockedPdf, 'encrypted_document', /without/],
    [
      'a PDF cut off',
      async () => (await textPdf([row('x', 60)])).slice(0, 600),
      'damaged_document',
      /upload the whole file/,
    ],
    [
      'a Word document cut off',
      () => docx.slice(0, docx.length - 30),
      'damaged_document',
      /Word document .* upload it again/,
    ],
    ['a Word document with a broken part', () => broken(docx), 'damaged_document', /Word document .* upload it again/],
    ['a Word document with a password', () => oldOffice('EncryptedPackage'), 'encrypted_document', /without one/],
    ['an old Word document', () => oldOffice('WordDocument'), 'unsupported_type', /\.doc .*as \.docx/],
    ['an archive', () => zipSync({ 'a.txt': strToU8('text') }), 'unsupported_type', /archive .*\(\.docx\)/],
    [
      'a picture of another type',
      () => Buffer.from('GIF89a\x01\0\x01\0\0\0\0;', 'latin1'),
      'unsupported_type',
      /image\/gif: save it as PNG or JPEG/,
    ],
    [
      'an OpenDocument text',
      () => zipSync({ mimetype: strToU8(odt), 'content.xml': strToU8('<a/>') }),
      'unsupported_type',
      /OpenDocument text \(\.odt\): save it as \.docx/,
    ],
    [
      'one whose name comes late',
      () => zipSync({ 'content.xml': strToU8('<a/>'), 'META-INF/manifest.xml': strToU8('<a/>') }),
      'unsupported_type',
      /OpenDocument text \(\.odt\)/,
    ],
    [
      'an EPUB book',
      () => zipSync({ mimetype: [strToU8('application/epub+zip'), { level: 0 }], 'a.xhtml': strToU8('<a/>') }),
      'unsupported_type',
      /EPUB book \(\.epub\): save it as \.docx/,
    ],
    [
      'one without its name',
      () => zipSync({ 'META-INF/container.xml': strToU8('<a/>') }),
      'unsupported_type',
      /EPUB book \(\.epub\)/,
    ],
    ['rich text', () => bytesOf('{\\rtf1\\ansi Hello}'), 'unsupported_type', /rtf: save it as \.docx/],
    ['XML', () => bytesOf('<?xml version="1.0"?><orders><order/></orders>'), 'unsupported_type', /application\/xml/],
    [
      'notes for instruments',
      () => Buffer.from('MThd\0\0\0\x06\0\x01\0\x01', 'latin1'),
      'unsupported_type',
      /audio\/midi/,
    ],
    [
      'nothing known',
      () => Uint8Array.from([1, 2, 3, 0, 255, 9]),
      'unsupported_type',
      /bytes do not tell .*own\): a PDF, a Word/,
    ],
    ['a tangled page', () => bytesOf(`<html>${'<div>'.repeat(5000)}x`), 'damaged_document', /1000 elements/],
    [
      'too many pages',
      () => makePdf(MAX_PDF_PAGES + 1, () => {}),
      'too_many_pages',
      /201 pages, and at most 200 .*split it/,
    ],
    [
      'pages with too much text',
      () => dense(MAX_PDF_CHARACTERS / 100 + 10, tooMany),
      'file_too_large',
      /300000 characters by page \d+.*split it/,
    ],
    [
      'a bomb',
      () => docxOf(paragraph('x'.repeat(MAX_DOCX_TEXT_BYTES))),
      'file_too_large',
      /6 MB when it is unpacked.*split it/,
    ],
    [
      'a bomb that says it is none',
      () => lying(docxOf(paragraph('x'.repeat(MAX_DOCX_TEXT_BYTES)))),
      'file_too_large',
      /6 MB/,
    ],
  ])('%s', async (_, make, code, message) => {
    const error = await read(new Uint8Array(await make())).catch((thrown) => thrown);
    expect(error).toMatchObject({ code, permanent: true, message: expect.stringMatching(message) });
  });

  /** With bytes that no inflater accepts where the document is. */
  function broken(bytes: Uint8Array): Uint8Array {
    const at = Buffer.from(bytes).indexOf('word/document.xml') + 'word/document.xml'.length;
    return bytes.map((byte, index) => (index >= at && index < at + 40 ? 0xff : byte));
  }

  /** With a declared size of one byte for every part. */
  function lying(bytes: Uint8Array): Uint8Array {
    const copy = Buffer.from(bytes);
    for (let at = copy.indexOf('PK\u0001\u0002'); at >= 0; at = copy.indexOf('PK\u0001\u0002', at + 1))
      copy.writeUInt32LE(1, at + 24);
    for (let at = copy.indexOf('PK\u0003\u0004'); at >= 0; at = copy.indexOf('PK\u0003\u0004', at + 1))
      copy.writeUInt32LE(1, at + 22);
    return copy;
  }

  function dense(lines: number, text: string): Promise<Uint8Array> {
    const page = Array.from({ length: 100 }, (_, index) => row(text, 10 + index * 5, 4, 10));
    return textPdf(...Array.from({ length: Math.ceil(lines / 100) }, () => page));
  }
});
