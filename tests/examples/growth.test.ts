import { expect, test } from 'vitest';
import { z } from 'zod';
import { proposeFacts } from '../../supabase/functions/_documents/candidate-names.ts';
import { docxToMarkdown } from '../../supabase/functions/_documents/docx-markdown.ts';
import { extractText } from '../../supabase/functions/_documents/extract-text.ts';
import { htmlToMarkdown } from '../../supabase/functions/_documents/html-markdown.ts';
import { isHtml } from '../../supabase/functions/_documents/html-text.ts';
import { hasMarkdownMarks, isCode, withMarkedHeadings } from '../../supabase/functions/_documents/markdown-text.ts';
import { tidyFacts } from '../../supabase/functions/_documents/read-facts.ts';
import { splitText } from '../../supabase/functions/_documents/split-text.ts';
import { classify, RetriableError, storableText } from '../../supabase/functions/_millrace/errors.ts';
import { isOwnCallbackUrl, readOrigin } from '../../supabase/functions/_millrace/jobs/callback-url.ts';
import { jobService } from '../../supabase/functions/_millrace/jobs/job-service.ts';
import { readOwner, signatureFault } from '../../supabase/functions/_millrace/jobs/webhook.ts';
import { quote, quoteResult } from '../../supabase/functions/_millrace/model/prompt.ts';
import { parseJson } from '../../supabase/functions/_millrace/parse-json.ts';
import { validateResult } from '../../supabase/functions/_millrace/stage/validate-result.ts';
import { sniffMediaType } from '../../supabase/functions/_services/pdf/pdf.ts';
import { readLines } from '../../supabase/functions/_services/pdf/pdf-lines.ts';
import { linesText } from '../../supabase/functions/_services/pdf/pdf-text.ts';
import { decodeText } from '../../supabase/functions/_services/text/decode-text.ts';
import { textQuality } from '../../supabase/functions/_services/text/text-quality.ts';
import { tidyText } from '../../supabase/functions/_services/text/tidy-text.ts';
import { growthFault, processorTime, sizedLines, type TextWork } from '../support/examples/growth.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const paragraph = (text: string) => `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`;
const docx = (document: string) => docxToMarkdown({ document, styles: '', footnotes: '', endnotes: '' });
const scraper = jobService({ name: 'scraper' });
const result = z.object({ text: z.string(), lines: z.array(z.object({ text: z.string() })) });
const linesOf = (text: string) => text.split('\n').map((line) => ({ text: line }));

const works: Record<string, TextWork> = {
  quoting: (text) => quote('site_text', text, 60_000),
  'quoting a result': (text) => quoteResult('plan', { text }),
  'checking a result': (text) => validateResult(result, { text, lines: linesOf(text) }, 1e9),
  'refusing a result': (text) => validateResult(result, { text, lines: [...linesOf(text), { [text]: text }] }, 1e9),
  "sorting a network's error": (text) => classify(new TypeError('fetch failed', { cause: new Error(text) })),
  "sorting a stage's error": (text) => classify(new RetriableError('server_error', text)),
  'sorting an error that nobody foresaw': (text) => classify(Object.assign(new Error(text), { name: text })),
  'telling words from rubbish': textQuality,
  decoding: (text) => decodeText(bytesOf(text)),
  "reading a callback's owner": readOwner,
  "reading a callback's owner by its metadata": (text) =>
    readOwner(JSON.stringify({ data: { metadata: { pipeline: text, stage: text, submission: text } } })),
  "checking a callback's signature": (text) =>
    signatureFault(
      text,
      new Headers({
        'webhook-id': '1',
        'webhook-timestamp': `${Math.floor(Date.now() / 1000)}`,
        'webhook-signature': 'v1,a',
      }),
      ['whsec_c2VjcmV0'],
    ),
  "reading a callback's URL": (text) => {
    const url = new URL(`http://localhost/?service=a&stage=${encodeURIComponent(storableText(text))}&pipeline=${text}`);
    return [isOwnCallbackUrl(url), readOrigin(url.searchParams)];
  },
  "reading a job's callback": (text) => scraper.readCallback?.(parseJson(text)),
  'telling what a file is': (text) => sniffMediaType(bytesOf(text)),
  'telling HTML': (text) => isHtml(bytesOf(text)),
  'reading a text file': (text) => extractText(bytesOf(text)),
  'reading an HTML file': (text) => extractText(bytesOf(`<!doctype html><html><body>${text}`)),
  'tidying a text': tidyText,
  'cutting a text into chunks': (text) => splitText('00000000-0000-0000-0000-000000000000', text),
  'proposing facts': proposeFacts,
  'tidying facts': (text) => {
    const said = { name: text, type: 'other', description: text } as const;
    const relation = { source: text, relation: text, target: `${text} B`, fact: text };
    return tidyFacts({ entities: [said, { ...said, name: `${text} B` }], relations: [relation] });
  },
  'telling Markdown': (text) => [hasMarkdownMarks(text), isCode(text)],
  'marking headings': withMarkedHeadings,
  'reading HTML': htmlToMarkdown,
  'reading a Word document': docx,
  "reading a Word document's paragraph": (text) => docx(paragraph(text.replace(/[<&]/g, ' '))),
  "joining a PDF's pieces": (text) =>
    readLines(
      text.split('\n').map((line, y) => ({ text: line, x: 50, y: y * 12, direction: [1, 0], width: 5, size: 10 })),
    ),
  "reading a PDF's lines": (text) => linesText(text.split('\f').map(sizedLines)),
};

test.each(Object.entries(works))(
  'takes time in proportion to a text, whatever the text holds, %s',
  { timeout: 300_000 },
  async (_, work) => {
    expect(await growthFault(processorTime(work))).toBeNull();
  },
);
