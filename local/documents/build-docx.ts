// A Word document with the parts that Word itself writes, as far as they hold text.
import { strToU8, zipSync } from 'fflate';

/** A heading of a level from 1, a paragraph, an item of a list, or a table whose first row is its head. */
export type DocxBlock = { heading: string; level: number } | { text: string } | { item: string } | { rows: string[][] };

const names = 'http://schemas.openxmlformats.org';
const word = `${names}/wordprocessingml/2006/main`;
const relations = `${names}/officeDocument/2006/relationships`;
const contentType = 'application/vnd.openxmlformats-officedocument.wordprocessingml';

/** Builds the file; the same blocks give the same bytes. */
export function buildDocx(blocks: readonly DocxBlock[]): Uint8Array {
  const parts: Record<string, string> = {
    '[Content_Types].xml': `<Types xmlns="${names}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="${contentType}.document.main+xml"/><Override PartName="/word/styles.xml" ContentType="${contentType}.styles+xml"/><Override PartName="/word/numbering.xml" ContentType="${contentType}.numbering+xml"/></Types>`,
    '_rels/.rels': relationships(
      `<Relationship Id="rId1" Type="${relations}/officeDocument" Target="word/document.xml"/>`,
    ),
    'word/_rels/document.xml.rels': relationships(
      `<Relationship Id="rId1" Type="${relations}/styles" Target="styles.xml"/><Relationship Id="rId2" Type="${relations}/numbering" Target="numbering.xml"/>`,
    ),
    'word/styles.xml': `<w:styles xmlns:w="${word}">${[1, 2, 3].map(headingStyle).join('')}</w:styles>`,
    'word/numbering.xml': `<w:numbering xmlns:w="${word}"><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>`,
    'word/document.xml': `<w:document xmlns:w="${word}"><w:body>${blocks.map(blockXml).join('')}</w:body></w:document>`,
  };
  const files = Object.entries(parts).map(([name, xml]) => [
    name,
    strToU8(`<?xml version="1.0" encoding="UTF-8"?>${xml}`),
  ]);
  return zipSync(Object.fromEntries(files), { mtime: new Date(2026, 0, 1) });
}

function relationships(xml: string): string {
  return `<Relationships xmlns="${names}/package/2006/relationships">${xml}</Relationships>`;
}

function headingStyle(level: number): string {
  return `<w:style w:type="paragraph" w:styleId="Heading${level}"><w:name w:val="heading ${level}"/></w:style>`;
}

function blockXml(block: DocxBlock): string {
  if ('heading' in block) return paragraph(block.heading, `<w:pStyle w:val="Heading${block.level}"/>`);
  if ('item' in block) return paragraph(block.item, '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>');
  if ('text' in block) return paragraph(block.text);
  const rows = block.rows.map((cells, index) => {
    const head = index === 0 ? '<w:trPr><w:tblHeader/></w:trPr>' : '';
    return `<w:tr>${head}${cells.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`;
  });
  return `<w:tbl>${rows.join('')}</w:tbl>`;
}

function paragraph(text: string, properties = ''): string {
  return `<w:p><w:pPr>${properties}</w:pPr><w:r><w:t xml:space="preserve">${escapeXml(text)}</w:t></w:r></w:p>`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
