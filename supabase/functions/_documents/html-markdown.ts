import { Parser } from 'htmlparser2';

/** A paragraph, a heading, an item, or a row of a table. */
interface Block {
  text: string;
  kind: 'text' | 'heading' | 'item' | 'row';
  inMain: boolean;
}

interface Row {
  /** Where in the list of blocks each cell begins. */
  cells: number[];
  isFirst: boolean;
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
 * What a reader sees on a page, as Markdown with headings, lists and tables; emphasis and links are left as their text.
 * Where a page marks its main part, only that. It reads as it parses: a tree of the page would take ten times as long.
 */
export function htmlToMarkdown(html: string): string {
  const writer = new MarkdownWriter();
  const parser = new Parser({
    onopentag: (name, attributes) => writer.open(name, attributes),
    ontext: (text) => writer.text(text),
    onclosetag: (name) => writer.close(name),
  });
  parser.write(html);
  parser.end();
  return writer.markdown();
}

class MarkdownWriter {
  readonly #blocks: Block[] = [];
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
  readonly #tables: { rows: number; row: Row | null }[] = [];

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
    else if (name === 'table') this.#tables.push({ rows: 0, row: null });
    else if (name === 'tr') this.#openRow();
    else if (name === 'td' || name === 'th') this.#tables.at(-1)?.row?.cells.push(this.#blocks.length);
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
    else if (name === 'table') this.#tables.pop();
    else if (name === 'tr') this.#closeRow();
  }

  markdown(): string {
    this.#flush();
    const main = this.#blocks.filter(({ inMain }) => inMain);
    const read = main.length > 0 ? main : this.#blocks;
    const title = this.#title.replace(/\s+/g, ' ').trim();
    const hasTitle = read.some(({ kind, text }) => kind === 'heading' && text.startsWith('# '));
    const shown: Block[] =
      hasTitle || !title || read.length === 0 ? read : [{ text: `# ${title}`, kind: 'heading', inMain: true }, ...read];
    return shown
      .map(({ text, kind }, index) => {
        const last = shown[index - 1];
        if (!last) return text;
        return `${last.kind === kind && (kind === 'item' || kind === 'row') ? '\n' : '\n\n'}${text}`;
      })
      .join('');
  }

  #openItem(): void {
    const depth = Math.max(0, this.#lists.length - 1);
    const number = this.#lists.at(-1);
    if (typeof number === 'number') this.#lists[depth] = number + 1;
    this.#mark = `${'  '.repeat(depth)}${typeof number === 'number' ? `${number + 1}.` : '-'} `;
  }

  #openRow(): void {
    const table = this.#tables.at(-1);
    if (table) table.row = { cells: [], isFirst: table.rows++ === 0 };
  }

  /** Makes one line of a row's cells, unless one of them has several paragraphs, as where a table only places them. */
  #closeRow(): void {
    const table = this.#tables.at(-1);
    const row = table?.row;
    if (!table || !row) return;
    table.row = null;
    const cells = row.cells.map((start, index) => this.#blocks.slice(start, row.cells[index + 1]));
    if (cells.length < 2 || cells.some((cell) => cell.length > 1 || cell.some(({ kind }) => kind !== 'text'))) return;
    const inMain = this.#main > 0;
    this.#blocks.length = row.cells[0] ?? 0;
    if (cells.every((cell) => cell.length === 0)) return;
    const texts = cells.map(([cell]) => cell?.text.replace(/\s+/g, ' ').replaceAll('|', '\\|') ?? '');
    this.#blocks.push({ text: `| ${texts.join(' | ')} |`, kind: 'row', inMain });
    if (row.isFirst) this.#blocks.push({ text: `|${' --- |'.repeat(texts.length)}`, kind: 'row', inMain });
  }

  #flush(): void {
    const inline = this.#inline;
    this.#inline = '';
    if (inline.trim() === '') return;
    const inMain = this.#main > 0;
    if (this.#heading > 0) {
      const text = `${'#'.repeat(this.#heading)} ${inline.replace(/\s+/g, ' ').trim()}`;
      this.#blocks.push({ text, kind: 'heading', inMain });
      return;
    }
    const text = this.#pre > 0 ? inline.replace(/^\n+|\s+$/g, '') : tidyLines(inline);
    const mark = this.#mark;
    this.#mark = '';
    if (mark) this.#blocks.push({ text: `${mark}${text}`, kind: 'item', inMain });
    // What is no heading must not look like one.
    else this.#blocks.push({ text: text.replace(/^(?=#{1,6} )/gm, '\\'), kind: 'text', inMain });
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
