// Reads the markdown that a sample book is written in: one file per chapter, with `#` and `##` headings, paragraphs,
// `**bold**` words and `[^1]` footnotes.
import fs from 'node:fs';
import path from 'node:path';

export interface Word {
  text: string;
  bold: boolean;
  /** A footnote that belongs on the page where the word stands. */
  note?: Paragraph;
}

export type Paragraph = Word[];

export interface Chapter {
  title: string;
  blocks: ({ kind: 'heading'; text: string } | { kind: 'paragraph'; words: Paragraph })[];
}

export interface BookFacts {
  title: string;
  subtitle: string;
  author: string;
  publisher: string;
  imprint: string[];
  /** Pages of the PDF that are images only. */
  scans: number[];
  /** Pages of the PDF that are images over a poor text layer. */
  bothReadings: number[];
  indexTerms: string[];
}

export interface Manuscript extends BookFacts {
  chapters: Chapter[];
}

/** Reads book.json and the chapters, in the order of their file names. */
export function readManuscript(folder: string): Manuscript {
  const facts: BookFacts = JSON.parse(fs.readFileSync(path.join(folder, 'book.json'), 'utf8'));
  const names = fs.readdirSync(folder).filter((name) => name.endsWith('.md'));
  const chapters = names.sort().map((name) => readChapter(fs.readFileSync(path.join(folder, name), 'utf8')));
  return { ...facts, chapters };
}

const superscripts = '⁰¹²³';

function readChapter(markdown: string): Chapter {
  const parts = markdown.trim().split(/\n{2,}/);
  const notes = new Map<string, Paragraph>();
  for (const part of parts) {
    const [, number, text] = /^\[\^(\d)\]: (.+)$/s.exec(part) ?? [];
    if (number && text) notes.set(number, readWords(`${superscripts[Number(number)]} ${typeset(text)}`, notes));
  }
  const [title = '', ...rest] = parts.filter((part) => !part.startsWith('[^'));
  const blocks = rest.map((part): Chapter['blocks'][number] =>
    part.startsWith('## ')
      ? { kind: 'heading', text: typeset(part.slice(3)) }
      : { kind: 'paragraph', words: readWords(typeset(part), notes) },
  );
  return { title: typeset(title.replace(/^# /, '')), blocks };
}

function typeset(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll("'", '’');
}

function readWords(text: string, notes: Map<string, Paragraph>): Paragraph {
  let bold = false;
  return text.split(' ').map((raw) => {
    if (raw.startsWith('**')) bold = true;
    const [, number] = /\[\^(\d)\]/.exec(raw) ?? [];
    const note = number ? notes.get(number) : undefined;
    const marked = raw.replace(/\[\^(\d)\]/, (_, digit) => superscripts[Number(digit)] ?? '');
    const word = { text: marked.replaceAll('**', ''), bold, ...(note && { note }) };
    if (raw.endsWith('**')) bold = false;
    return word;
  });
}
