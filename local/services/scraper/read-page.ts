import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';
import { charsetDoubts } from '../../../supabase/functions/_services/text/charset-doubts.ts';
import type { Fetched } from '../http/fetch-url.ts';
import { JobError, type JobErrorCode } from '../http/job-error.ts';
import { decodePage, isHtml } from './decode-page.ts';
import { noMetadata, type PageMetadata, readMetadata, readName } from './page-metadata.ts';

/** The text of a page, its metadata, and its links (absolute, as written, in document order). */
export interface ReadPage {
  title: string;
  markdown: string;
  links: string[];
  metadata: PageMetadata;
  /** Doubts about its letters, in sentences. */
  doubts: string[];
}

/** The outcome of reading a page, in plain data. */
export type ReadOutcome = { page: ReadPage } | { fault: { code: JobErrorCode; message: string } };

// Below this share of the page's whole text, the article found is taken for a mere part of the page.
const smallestArticleShare = 0.3;
const mostLinks = 500;

const notText = 'script, style, noscript, template, svg, img, picture, video, audio, iframe, form, button, nav, footer';

/** Turndown's parser takes a frameset for the body, and then finds none. */
const frameTags = /<\/?(?:frameset|frame|noframes)\b[^>]*>/gi;

const turndown = new TurndownService({
  headingStyle: 'atx',
  codeBlockStyle: 'fenced',
  bulletListMarker: '-',
}).addRule('link text', { filter: 'a', replacement: (content) => content });

/**
 * Turns a fetched HTML or plain text page into markdown. Throws JobError: `unsupported_type` for anything else,
 * `unreadable_page` where a parser fails.
 */
export function readPage({ url, contentType, body }: Omit<Fetched, 'status'>): ReadPage {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type !== 'text/plain' && !isHtml(type)) {
    throw new JobError('unsupported_type', `${url.href}: is "${type}"; only HTML and plain text can be read`);
  }
  try {
    const decoded = decodePage(body, contentType);
    const text = clean(decoded.text);
    return { ...(type === 'text/plain' ? readText(text) : readHtml(text, url)), doubts: charsetDoubts(decoded) };
  } catch (error) {
    throw unreadable(url, error);
  }
}

function unreadable(url: URL, error: unknown): JobError {
  // Too many elements within one another end the stack.
  if (error instanceof RangeError) return new JobError('no_content', `${url.href}: its HTML is too tangled to be read`);
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new JobError('unreadable_page', `${url.href}: the page cannot be read (${said.slice(0, 200)})`);
}

function readText(text: string): Omit<ReadPage, 'doubts'> {
  const title = text.trim().split('\n')[0] ?? '';
  return { title: title.trim().slice(0, 120), markdown: text.trim(), links: [], metadata: noMetadata };
}

function readHtml(html: string, url: URL): Omit<ReadPage, 'doubts'> {
  const { document } = parseHTML(/<html[\s>]/i.test(html) ? html : `<html><body>${html}</body></html>`);
  const base = baseOf(document, url);
  const links = readLinks(document, base);
  const metadata = readMetadata(document as unknown as Document, url, base);
  const documentTitle = oneLine(document.querySelector('title')?.textContent ?? '');
  for (const element of document.querySelectorAll(notText)) element.remove();
  const whole = document.cloneNode(true) as Document;
  whole.querySelector('head')?.remove();
  const wholeText = oneLine(whole.documentElement?.textContent ?? '');

  const article = new Readability(document as unknown as Document).parse();
  const articleText = oneLine(article?.textContent ?? '');
  const useArticle = articleText.length > 0 && articleText.length >= wholeText.length * smallestArticleShare;
  const content = useArticle ? (article?.content ?? '') : (whole.documentElement?.innerHTML ?? '');
  return {
    title: oneLine(clean(article?.title || documentTitle)),
    markdown: clean(turndown.turndown(content.replace(frameTags, ' '))).trim(),
    links,
    metadata: withByline(metadata, article?.byline),
  };
}

function baseOf(document: Document, url: URL): URL {
  const href = document.querySelector('base')?.getAttribute('href') ?? '';
  return URL.canParse(href, url.href) ? new URL(href, url.href) : url;
}

/** Takes the author from the line under the title where the metadata names none. */
function withByline(metadata: PageMetadata, byline: string | null | undefined): PageMetadata {
  return { ...metadata, author: metadata.author ?? readName(clean(byline ?? '')) };
}

function readLinks(document: Document, base: URL): string[] {
  return [...document.querySelectorAll('a[href]')].slice(0, mostLinks).flatMap((anchor) => {
    const target = anchor.getAttribute('href') ?? '';
    return URL.canParse(target, base) ? [new URL(target, base).href] : [];
  });
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

// Control characters and halves of surrogate pairs are no text, and a database may refuse to store them.
function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go.
  return Buffer.from(text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '')).toString();
}
