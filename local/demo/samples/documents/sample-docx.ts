// A DOCX is a ZIP of XML: these few parts are all that a reader needs.
import { strToU8, zipSync } from 'fflate';
import type { Block } from './read-blocks.ts';

const made = new Date('2026-01-01T00:00:00Z');
const declaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const packageParts = 'http://schemas.openxmlformats.org/package/2006';
const officeDocument = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const wordParts = 'application/vnd.openxmlformats-officedocument.wordprocessingml';
const wordNamespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';

/** Returns a DOCX with headings and tables; the same bytes each time. */
export function buildSampleDocx(blocks: Block[]): Uint8Array {
  const parts = {
    '[Content_Types].xml': `<Types xmlns="${packageParts}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/word/document.xml" ContentType="${wordParts}.document.main+xml"/>
<Override PartName="/word/styles.xml" ContentType="${wordParts}.styles+xml"/>
</Types>`,
    '_rels/.rels': relationships('officeDocument', 'word/document.xml'),
    'word/_rels/document.xml.rels': relationships('styles', 'styles.xml'),
    'word/styles.xml': `<w:styles ${wordNamespace}>${[1, 2, 3].map(headingStyle).join('')}</w:styles>`,
    'word/document.xml': `<w:document ${wordNamespace}><w:body>${blocks.map(blockXml).join('')}</w:body></w:document>`,
  };
  const files = Object.entries(parts).map(([name, xml]) => [name, strToU8(declaration + xml)]);
  return zipSync(Object.fromEntries(files), { mtime: made });
}

function relationships(type: string, target: string): string {
  const relationship = `<Relationship Id="rId1" Type="${officeDocument}/${type}" Target="${target}"/>`;
  return `<Relationships xmlns="${packageParts}/relationships">${relationship}</Relationships>`;
}

function headingStyle(level: number): string {
  const paragraph = `<w:pPr><w:outlineLvl w:val="${level - 1}"/></w:pPr><w:rPr><w:b/><w:sz w:val="${36 - level * 4}"/></w:rPr>`;
  return `<w:style w:type="paragraph" w:styleId="Heading${level}"><w:name w:val="heading ${level}"/>${paragraph}</w:style>`;
}

function blockXml(block: Block): string {
  if (block.kind === 'paragraph') return paragraph(block.text);
  if (block.kind === 'heading') return paragraph(block.text, `Heading${block.level}`);
  const rows = block.rows.map((row) => `<w:tr>${row.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`);
  return `<w:tbl><w:tblPr/><w:tblGrid/>${rows.join('')}</w:tbl>`;
}

function paragraph(text: string, style?: string): string {
  const properties = style ? `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>` : '';
  return `<w:p>${properties}<w:r><w:t xml:space="preserve">${escapeXml(text)}</w:t></w:r></w:p>`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
