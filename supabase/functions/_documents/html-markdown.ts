import {
  type Block,
  bodyText,
  codeText,
  headingText,
  joinBlocks,
  MarkdownBlocks,
} from '../_services/text/markdown-blocks.ts';
import { type MarkupReader, parseMarkup } from './parse-markup.ts';

interface PageBlock extends Block {
  inMain: boolean;
}

const unread = new Set(
  'script style noscript template svg iframe object canvas audio video select textarea button datalist nav footer aside dialog'.split(
    ' ',
  ),
);
const unreadRoles = new Set(['navigation', 'banner', 'contentinfo', 'search', 'complementary', 'menu', 'dialog']);
const blocks = new Set(
  (
    'html body address article blockquote center dd details div dl dt fieldset figcaption figure form h1 h2 h3 h4 h5 h6 header hr legend ' +
    'li main ol p pre section summary table tbody td tfoot th thead tr ul caption'
  ).split(' '),
);

/**
 * Returns the visible text of a page as Markdown with headings, lists and tables; emphasis and links become plain
 * text. Where a page marks its main part, returns only that part. Converts while it parses: a tree of the page would
 * take ten times as long. Throws a PermanentError for a page too tangled to read.
 */
export function htmlToMarkdown(html: string): string {
  const writer = new MarkdownWriter();
  parseMarkup(html, 'html', writer);
  return writer.markdown();
}

class MarkdownWriter implements MarkupReader {
  readonly #blocks = new MarkdownBlocks<PageBlock>();
  #inline = '';
  #heading = 0;
  #title = '';
  #inTitle = false;
  /** How many open elements are not read, the outermost of which is one that never is. */
  #unread = 0;
  #main = 0;
  readonly #mains: boolean[] = [];
  #pre = 0;
  /** Of the open lists: the number of the last item, null where they are not counted. */
  readonly #lists: (number | null)[] = [];
  /** The mark of the item that no text has come to yet. */
  #mark = '';

  open(name: string, attributes: Record<string, string>): void {
    if (this.#unread > 0 || isUnread(name, attributes)) {
      this.#unread++;
      return;
    }
    if (name === 'title') this.#inTitle = true;
    if (name === 'br') this.#inline += this.#pre || !this.#heading ? '\n' : ' ';
    if (!blocks.has(name)) return;
    this.#flush();
    const isMain = name === 'main' || attributes.role === 'main';
    this.#mains.push(isMain);
    if (isMain) this.#main++;
    if (/^h[1-6]$/.test(name)) this.#heading = Number(name[1]);
    else if (name === 'pre') this.#pre++;
    else if (name === 'ul') this.#lists.push(null);
    else if (name === 'ol') this.#lists.push(Number(attributes.start ?? 1) - 1 || 0);
    else if (name === 'li') this.#openItem();
    else if (name === 'table') this.#blocks.openTable();
    else if (name === 'tr') this.#blocks.openRow();
    else if (name === 'td' || name === 'th') this.#blocks.openCell();
  }

  text(text: string): void {
    if (this.#unread > 0) return;
    if (this.#inTitle) this.#title += text;
    else this.#inline += this.#pre > 0 ? text : text.replace(/\s+/g, ' ');
  }

  close(name: string): void {
    if (this.#unread > 0) {
      this.#unread--;
      return;
    }
    if (name === 'title') this.#inTitle = false;
    if (!blocks.has(name)) return;
    this.#flush();
    if (this.#mains.pop()) this.#main--;
    if (/^h[1-6]$/.test(name)) this.#heading = 0;
    else if (name === 'pre') this.#pre--;
    else if (name === 'ul' || name === 'ol') this.#lists.pop();
    else if (name === 'li') this.#mark = '';
    else if (name === 'table') this.#blocks.closeTable();
    else if (name === 'tr') this.#blocks.closeRow();
  }

  markdown(): string {
    this.#flush();
    const { all } = this.#blocks;
    const main = all.filter(({ inMain }) => inMain);
    const read: Block[] = main.length > 0 ? main : all;
    const hasTitle = read.some(({ kind, text }) => kind === 'heading' && text.startsWith('# '));
    if (hasTitle || read.length === 0 || this.#title.trim() === '') return joinBlocks(read);
    return joinBlocks([{ kind: 'heading', text: headingText(1, this.#title) }, ...read]);
  }

  #openItem(): void {
    const depth = Math.max(0, this.#lists.length - 1);
    const number = this.#lists.at(-1);
    if (typeof number === 'number') this.#lists[depth] = number + 1;
    this.#mark = `${'  '.repeat(depth)}${typeof number === 'number' ? `${number + 1}.` : '-'} `;
  }

  #flush(): void {
    const inline = this.#inline;
    this.#inline = '';
    if (inline.trim() === '') return;
    const inMain = this.#main > 0;
    if (this.#heading > 0) {
      this.#blocks.add({ kind: 'heading', text: headingText(this.#heading, inline), inMain });
      return;
    }
    const isCode = this.#pre > 0 && inline.trim().includes('\n');
    const text = this.#pre > 0 ? inline.replace(/^\n+/, '').trimEnd() : tidyLines(inline);
    const mark = this.#mark;
    this.#mark = '';
    if (mark) this.#blocks.add({ kind: 'item', text: `${mark}${bodyText(text)}`, inMain });
    else this.#blocks.add({ kind: 'text', text: isCode ? codeText(text) : bodyText(text), inMain });
  }
}

function isUnread(name: string, { role, hidden, style, 'aria-hidden': ariaHidden }: Record<string, string>): boolean {
  return (
    unread.has(name) ||
    (role !== undefined && unreadRoles.has(role)) ||
    hidden !== undefined ||
    ariaHidden === 'true' ||
    (style !== undefined && /display\s*:\s*none/i.test(style))
  );
}

function tidyLines(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(/\s+/g, ' ').trim())
    .join('\n')
    .trim();
}
