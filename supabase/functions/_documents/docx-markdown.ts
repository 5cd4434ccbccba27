import { bodyText, headingText, joinBlocks, MarkdownBlocks } from '../_services/text/markdown-blocks.ts';
import { parseMarkup } from './parse-markup.ts';

/** The parts of a Word document that hold its text, as XML. */
export interface DocxParts {
  document: string;
  styles: string;
  footnotes: string;
  endnotes: string;
}

/** The role that a style gives a paragraph: a heading of some level, an item of a list, or neither. */
type StyleRole = { heading: number } | 'item' | undefined;

interface Paragraph {
  text: string;
  role: StyleRole;
}

// Deleted or moved text, former formatting, and fallbacks for readers that know no better.
const unread = new Set(['del', 'moveFrom', 'pPrChange', 'Fallback']);
// Elements whose attributes are read: there are millions of others.
const attributed = new Set(['pStyle', 'outlineLvl', 'numId', 'style', 'name', 'basedOn', 'footnote', 'endnote']);
const deepestHeading = 6;

/**
 * The text as Markdown with headings, lists and tables, notes last. Headings are told by the styles' names and outline
 * levels. It reads as it parses: a library that makes a tree of the document takes ten times as long.
 */
export function docxToMarkdown({ document, styles, footnotes, endnotes }: DocxParts): string {
  const roles = readStyles(styles);
  const blocks = [document, footnotes, endnotes].flatMap((xml) => readBlocks(xml, roles));
  return joinBlocks(blocks);
}

function readBlocks(xml: string, roles: Map<string, StyleRole>) {
  const blocks = new MarkdownBlocks();
  // A box with text of its own stands within a paragraph.
  const paragraphs: Paragraph[] = [];
  let isText = false;
  let skipped = 0;
  parseXml(xml, {
    open(name, value, attributes) {
      if (skipped > 0 || unread.has(name) || isSeparator(name, attributes)) {
        skipped++;
        return;
      }
      const paragraph = paragraphs.at(-1);
      if (name === 'p') paragraphs.push({ text: '', role: undefined });
      else if (name === 't') isText = true;
      else if (name === 'tbl') blocks.openTable();
      else if (name === 'tr') blocks.openRow();
      else if (name === 'tc') blocks.openCell();
      if (!paragraph) return;
      if (name === 'pStyle') paragraph.role ??= roles.get(value);
      else if (name === 'outlineLvl') paragraph.role = headingRole(value) ?? paragraph.role;
      else if (name === 'numId' && value !== '0') paragraph.role ??= 'item';
      else if (name === 'tab') paragraph.text += ' ';
      else if (name === 'br' || name === 'cr') paragraph.text += '\n';
      else if (name === 'noBreakHyphen') paragraph.text += '-';
    },
    text(text) {
      const paragraph = paragraphs.at(-1);
      if (isText && paragraph && skipped === 0) paragraph.text += text;
    },
    close(name) {
      if (skipped > 0) {
        skipped--;
        return;
      }
      if (name === 't') isText = false;
      else if (name === 'tr') blocks.closeRow();
      else if (name === 'tbl') blocks.closeTable();
      else if (name === 'p') addParagraph(blocks, paragraphs.pop());
    },
  });
  return blocks.all;
}

function addParagraph(blocks: MarkdownBlocks, paragraph: Paragraph | undefined): void {
  const text = paragraph?.text.trim();
  if (!paragraph || !text) return;
  const { role } = paragraph;
  if (role === 'item') blocks.add({ kind: 'item', text: `- ${text}` });
  else if (role) blocks.add({ kind: 'heading', text: headingText(role.heading, text) });
  else blocks.add({ kind: 'text', text: bodyText(text) });
}

/** Role of each style by its id; a style without a role of its own has that of the style it is based on. */
function readStyles(xml: string): Map<string, StyleRole> {
  const styles = new Map<string, { basedOn?: string; role: StyleRole }>();
  let style: { basedOn?: string; role: StyleRole } = { role: undefined };
  parseXml(xml, {
    open(name, value, attributes) {
      if (name === 'style') {
        style = { role: undefined };
        styles.set(attributes.styleId ?? '', style);
      } else if (name === 'name') style.role = roleOfName(value);
      else if (name === 'basedOn') style.basedOn = value;
      else if (name === 'outlineLvl') style.role ??= headingRole(value);
    },
    text() {},
    close() {},
  });
  const roleOf = (id: string | undefined, depth: number): StyleRole => {
    const found = styles.get(id ?? '');
    return !found || found.role || depth === 0 ? found?.role : roleOf(found.basedOn, depth - 1);
  };
  return new Map([...styles.keys()].map((id) => [id, roleOf(id, 10)]));
}

// Word writes the names of its own styles in English, whatever the user's language.
function roleOfName(name: string): StyleRole {
  const level = /^heading ([1-9])$/i.exec(name)?.[1];
  if (level) return { heading: Math.min(Number(level), deepestHeading) };
  if (/^title$/i.test(name)) return { heading: 1 };
  return /^list (bullet|number)/i.test(name) ? 'item' : undefined;
}

/** Levels are counted from 0, and 9 is that of text. */
function headingRole(level: string): StyleRole {
  return /^[0-8]$/.test(level) ? { heading: Math.min(Number(level) + 1, deepestHeading) } : undefined;
}

/** The lines between text and notes are kept among the notes. */
function isSeparator(name: string, attributes: Record<string, string>): boolean {
  return /^(foot|end)note$/.test(name) && (attributes.type ?? 'normal') !== 'normal';
}

interface XmlReader {
  /** Names are without their namespaces' prefixes, which each producer chooses; `value` is the attribute val. */
  open(name: string, value: string, attributes: Record<string, string>): void;
  text(text: string): void;
  close(name: string): void;
}

function parseXml(xml: string, reader: XmlReader): void {
  parseMarkup(xml, 'xml', {
    open(name, attributes) {
      const element = localName(name);
      const entries = attributed.has(element) ? Object.entries(attributes) : [];
      const local = Object.fromEntries(entries.map(([key, value]) => [localName(key), value]));
      reader.open(element, local.val ?? '', local);
    },
    text: (text) => reader.text(text),
    close: (name) => reader.close(localName(name)),
  });
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}
