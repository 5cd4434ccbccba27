import { strFromU8, unzipSync } from 'fflate';
import { fileTypeFromBuffer } from 'file-type';
import { extractText, getDocumentProxy } from 'unpdf';
import { beforeAll, describe, expect, it } from 'vitest';
import { readBlocks } from '../../local/demo/samples/documents/read-blocks.ts';
import { sampleDocuments } from '../../local/demo/samples/documents/sample-documents.ts';

let files: Map<string, { bytes: Uint8Array; mediaType: string }>;

beforeAll(async () => {
  files = new Map((await sampleDocuments()).map((file) => [file.name, file]));
});

/** A copy, since reading a PDF empties the bytes it is given. */
function bytesOf(name: string): Uint8Array {
  return new Uint8Array(files.get(name)?.bytes ?? []);
}

describe('the sample documents', () => {
  it('are each of another type, and what they are called', async () => {
    expect([...files.keys()].map((name) => name.split('.')[1])).toEqual(['pdf', 'docx', 'html', 'md', 'jpg', 'wav']);
    for (const [name, { mediaType, bytes }] of files) {
      const sniffed = (await fileTypeFromBuffer(bytes))?.mime;
      expect(sniffed, name).toBe(mediaType.startsWith('text/') ? undefined : mediaType);
    }
  });

  it('are built with the same bytes each time', async () => {
    for (const { name, bytes } of await sampleDocuments()) expect(Buffer.compare(bytes, bytesOf(name)), name).toBe(0);
  });

  it('name the same things in files of different types', async () => {
    const pdf = (await extractText(await getDocumentProxy(bytesOf('restoration-report.pdf')), { mergePages: true }))
      .text;
    const docx = strFromU8(unzipSync(bytesOf('council-minutes.docx'))['word/document.xml'] ?? new Uint8Array());
    const others = ['newsletter.html', 'lock-survey.md', 'site-meeting.wav'].map((name) => strFromU8(bytesOf(name)));
    for (const text of [pdf, docx, ...others]) {
      expect(text).toContain('Pell Aqueduct');
      expect(text).toContain('Brackmoor Engineering');
    }
  });

  it('have several pages and headings in the PDF, headings and a table in the DOCX', async () => {
    const pages = (await extractText(await getDocumentProxy(bytesOf('restoration-report.pdf')), { mergePages: false }))
      .text;
    expect(pages.length).toBeGreaterThanOrEqual(3);
    expect(pages.every((page) => page.length > 100)).toBe(true);
    const xml = strFromU8(unzipSync(bytesOf('council-minutes.docx'))['word/document.xml'] ?? new Uint8Array());
    expect(xml.match(/<w:pStyle w:val="Heading2"\/>/g)).toHaveLength(4);
    expect(xml.match(/<w:tr>/g)).toHaveLength(5);
  });

  it('have a recording of some seconds, which carries what is said as the comment of the file', () => {
    const wav = Buffer.from(bytesOf('site-meeting.wav'));
    const seconds = wav.readUInt32LE(wav.indexOf('data') + 4) / wav.readUInt32LE(wav.indexOf('fmt ') + 16);
    expect(seconds).toBeGreaterThan(3);
    expect(seconds).toBeLessThan(20);
    const at = wav.indexOf('ICMT');
    const comment = wav.subarray(at + 8, at + 8 + wav.readUInt32LE(at + 4)).toString();
    expect(comment).toMatch(/^This is the site meeting at the Pell Aqueduct\.[\s\S]+May\.\0$/);
    expect(wav.readUInt32LE(4)).toBe(wav.length - 8);
  });
});

it('the Markdown of the samples is read as headings, paragraphs and tables', () => {
  expect(readBlocks('## Locks\n\nTwo\nlines\n\n| a | b |\n| --- | --- |\n| 1 | 2 |')).toEqual([
    { kind: 'heading', level: 2, text: 'Locks' },
    { kind: 'paragraph', text: 'Two\nlines' },
    {
      kind: 'table',
      rows: [
        ['a', 'b'],
        ['1', '2'],
      ],
    },
  ]);
});
