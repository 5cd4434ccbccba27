import type { z } from 'zod';
import type { metadataResult, OutlineEntry } from '../_pipelines/books-results.ts';
import { headingFinder, partsOf } from './page-parts.ts';
import type { PageRow } from './page-rows.ts';
import { titleKey } from './titles.ts';

/** A book as one document. A page is anchored as `page-` and its place in the file. */
export interface BookDocument {
  title: string;
  metadata: z.output<typeof metadataResult> | null;
  /** Whether a person has reviewed the outline; false where no review was needed. */
  outline_reviewed: boolean;
  outline: (OutlineEntry & { anchor: string })[];
  pages: {
    number: number;
    label: string | null;
    anchor: string;
    /** Whether the page could be read. */
    read: boolean;
    body: string[];
    footnotes: string[];
  }[];
}

/** Makes the document from a book's pages and its outline. */
export function makeDocument(
  pages: readonly PageRow[],
  facts: Pick<BookDocument, 'title' | 'metadata' | 'outline_reviewed'> & { outline: OutlineEntry[] },
): BookDocument {
  return {
    ...facts,
    outline: facts.outline.map((entry) => ({ ...entry, anchor: anchorOf(entry.page) })),
    pages: pages.map(({ number, blend_result: blend, label_result: label }) => {
      const parts = blend ? partsOf(blend, label) : { body: [], footnotes: [] };
      return { number, label: label?.page_label ?? null, anchor: anchorOf(number), read: blend !== null, ...parts };
    }),
  };
}

/** Writes the document for people, as Markdown with HTML anchors. */
export function toMarkdown({ title, metadata, outline, pages }: BookDocument): string {
  const about = metadata
    ? [metadata.subtitle, metadata.author, [metadata.publisher, metadata.year].filter(Boolean).join(', ')]
    : [];
  const contents = outline.map(
    ({ title: entry, level, anchor, label }) =>
      `${'  '.repeat(level - 1)}- [${escapeText(entry)}](#${anchor})${label ? ` (${label})` : ''}`,
  );
  const byPage = new Map<number, BookDocument['outline']>();
  for (const entry of outline) {
    const same = byPage.get(entry.page);
    if (same) same.push(entry);
    else byPage.set(entry.page, [entry]);
  }
  const texts = pages.map((page) => {
    const entries = byPage.get(page.number) ?? [];
    const head = `<a id="${page.anchor}"></a>\n\n*Page ${page.number}${page.label ? `, printed ${escapeText(page.label)}` : ''}*`;
    if (!page.read) return `${head}\n\n*This page could not be read.*`;
    const notes = page.footnotes.length > 0 ? `\n\n---\n\n${page.footnotes.map(escapeText).join('\n')}` : '';
    return `${head}\n\n${bodyText(page.body, entries)}${notes}`;
  });
  return [
    `# ${escapeText(title)}`,
    ...about.filter(Boolean).map((line) => escapeText(String(line))),
    '## Contents',
    contents.join('\n'),
    ...texts,
    '',
  ].join('\n\n');
}

function bodyText(lines: string[], entries: readonly OutlineEntry[]): string {
  const heads = new Map<number, { text: string; count: number }>();
  const [find, findByKey] = entries.length === 0 ? [] : [headingFinder(lines), headingFinder(lines.map(titleKey))];
  for (const { title, level } of entries) {
    const place = find?.(title) ?? findByKey?.(titleKey(title));
    if (place)
      heads.set(place.line, { text: `${'#'.repeat(Math.min(level + 1, 6))} ${escapeText(title)}`, count: place.count });
  }
  const blocks: string[] = [];
  let open: string[] = [];
  const close = () => {
    if (open.length > 0) blocks.push(open.map(escapeText).join('\n'));
    open = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const head = heads.get(at);
    if (head) {
      close();
      blocks.push(head.text);
      at += head.count - 1;
    } else open.push(lines[at] ?? '');
  }
  close();
  return blocks.join('\n\n');
}

function anchorOf(page: number): string {
  return `page-${page}`;
}

/** Escapes a text, so that neither Markdown nor HTML interprets any of it. */
function escapeText(text: string): string {
  return text.replace(/[\\`*_[\]<>#|]/g, '\\$&').replace(/^(\s*)([-+]|\d+\.)(?=\s)/, '$1\\$2');
}
