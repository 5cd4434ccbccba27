// Documents that tests make of a text, and their text read again.
import { strToU8, unzipSync, zipSync } from 'fflate';
import type { Block } from '../../../local/demo/samples/documents/read-blocks.ts';
import { buildSampleDocx } from '../../../local/demo/samples/documents/sample-docx.ts';
import { type ExtractedText, extractText } from '../../../supabase/functions/_documents/extract-text.ts';

export const bytesOf = (text: string) => new TextEncoder().encode(text);
export const latin1 = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'));
export const utf16 = (text: string) => new Uint8Array(Buffer.from(`\ufeff${text}`, 'utf16le'));

export async function read(bytes: Uint8Array | string): Promise<ExtractedText> {
  const found = await extractText(typeof bytes === 'string' ? bytesOf(bytes) : bytes);
  if ('external' in found) throw new Error(`to be read by ${found.external}`);
  return found;
}

export const textOf = async (bytes: Uint8Array | string) => (await read(bytes)).text;

export const row = (text: string, y: number, size = 11, x = 60) => ({ text, x, y, size });
export const blocks: Block[] = [
  { kind: 'heading', level: 1, text: 'Minutes' },
  { kind: 'paragraph', text: 'The ferry leaves at seven & comes back before noon.' },
  { kind: 'heading', level: 2, text: 'Money' },
  {
    kind: 'table',
    rows: [
      ['Payer', 'Pounds'],
      ['Harbour | Board', '40'],
    ],
  },
];

/** A Word document whose text is this XML. */
export function docxOf(body: string, parts: Record<string, string> = {}): Uint8Array {
  const whole = unzipSync(new Uint8Array(buildSampleDocx(blocks)));
  const document = `<w:document xmlns:w="w"><w:body>${body}</w:body></w:document>`;
  const added = Object.entries(parts).map(([name, xml]) => [name, strToU8(xml)]);
  return zipSync({ ...whole, 'word/document.xml': strToU8(document), ...Object.fromEntries(added) });
}

export const odt = 'application/vnd.oasis.opendocument.text';
export const run = (text: string) => `<w:r><w:t>${text}</w:t></w:r>`;
export const paragraph = (text: string, properties = '') => `<w:p><w:pPr>${properties}</w:pPr>${run(text)}</w:p>`;
