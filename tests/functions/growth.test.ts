import { describe, expect, test } from 'vitest';
import { isContentsTitle, readLineEnd } from '../../supabase/functions/_books/contents-lines.ts';
import { proposeLabels } from '../../supabase/functions/_books/page-layout.ts';
import { aroundNumber } from '../../supabase/functions/_books/page-numbers.ts';
import { plainLines, splitPages } from '../../supabase/functions/_books/plain-pages.ts';
import { readContents } from '../../supabase/functions/_books/read-contents.ts';
import { alikeTitles, numbersOf } from '../../supabase/functions/_books/titles.ts';
import { proposeFacts } from '../../supabase/functions/_documents/candidate-names.ts';
import { docxToMarkdown } from '../../supabase/functions/_documents/docx-markdown.ts';
import { htmlToMarkdown } from '../../supabase/functions/_documents/html-markdown.ts';
import { isHtml } from '../../supabase/functions/_documents/html-text.ts';
import { hasMarkdownMarks, isCode, withMarkedHeadings } from '../../supabase/functions/_documents/markdown-text.ts';
import { linesText } from '../../supabase/functions/_documents/pdf-text.ts';
import { tidyText } from '../../supabase/functions/_documents/tidy-text.ts';
import { decodeText } from '../../supabase/functions/_shared/decode-text.ts';
import { classify, RetriableError } from '../../supabase/functions/_shared/errors.ts';
import { sniffMediaType } from '../../supabase/functions/_shared/pdf.ts';
import { readLines } from '../../supabase/functions/_shared/pdf-lines.ts';
import { quote, quoteResult } from '../../supabase/functions/_shared/prompt.ts';
import { textQuality } from '../../supabase/functions/_shared/text-quality.ts';
import { readOwner } from '../../supabase/functions/_shared/webhook.ts';
import { growthFault, hostileTexts, type TextWork } from '../support/growth.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const sizedLines = (text: string) =>
  plainLines(text).map((line, at) => ({ ...line, size: 10 + (at % 3), x: at % 7, y: at }));

const paragraph = (text: string) => `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`;
const docx = (document: string) => docxToMarkdown({ document, styles: '', footnotes: '', endnotes: '' });

const works: Record<string, TextWork> = {
  quoting: (text) => quote('site_text', text, 60_000),
  'quoting a result': (text) => quoteResult('plan', { text }),
  'sorting an error': (text) => classify(new TypeError('fetch failed', { cause: new Error(text) })),
  'recording an error': (text) => classify(new RetriableError('server_error', text)),
  'telling words from rubbish': textQuality,
  decoding: (text) => decodeText(bytesOf(text)),
  "reading a callback's owner": readOwner,
  'telling what a file is': (text) => sniffMediaType(bytesOf(text)),
  'telling HTML': (text) => isHtml(bytesOf(text)),
  'tidying a text': tidyText,
  'proposing facts': proposeFacts,
  'telling Markdown': (text) => [hasMarkdownMarks(text), isCode(text)],
  'marking headings': withMarkedHeadings,
  'reading HTML': htmlToMarkdown,
  'reading a Word document': (text) => docx(text),
  "reading a Word document's paragraph": (text) => docx(paragraph(text.replace(/[<&]/g, ' '))),
  "joining a PDF's pieces": (text) =>
    readLines(
      text.split('\n').map((str, y) => ({ str, transform: [1, 0, 0, 10, 50, 800 - y * 12], width: 5, hasEOL: true })),
      [1, 0, 0, -1, 0, 800],
    ),
  "reading a PDF's lines": (text) => linesText(text.split('\f').map(sizedLines)),
  'reading the end of a line': readLineEnd,
  'telling the title of contents': isContentsTitle,
  'reading a number beside a text': aroundNumber,
  'comparing titles': (text) => [alikeTitles(text, `x${text}`), numbersOf(text)],
  'parting a text into pages': (text) => splitPages(text).flatMap(plainLines),
  "reading a page's layout": (text) => proposeLabels(sizedLines(text), true),
  'reading contents': (text) => readContents([{ page: 1, lines: sizedLines(text) }]),
};

describe('takes time in proportion to a text, whatever the text holds,', () => {
  test.each(Object.entries(works))('%s', { timeout: 300_000 }, async (_, work) => {
    const faults: string[] = [];
    for (const [name, textOf] of hostileTexts) {
      const fault = await growthFault(work, textOf);
      if (fault) faults.push(`${name}: ${fault}`);
    }
    expect(faults).toEqual([]);
  });
});
