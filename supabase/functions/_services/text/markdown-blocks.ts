/** A part of a document, as Markdown. */
export interface Block {
  text: string;
  kind: 'text' | 'heading' | 'item' | 'row';
}

interface Table<B> {
  rows: number;
  /** Of the open row: where in the list of blocks each cell begins. */
  cells: number[];
  outer: Table<B> | null;
}

/** Gathers a document's blocks while it is read, and makes rows of what stands in the cells of tables. */
export class MarkdownBlocks<B extends Block = Block> {
  readonly all: B[] = [];
  #table: Table<B> | null = null;

  add(block: B): void {
    this.all.push(block);
  }

  openTable(): void {
    this.#table = { rows: 0, cells: [], outer: this.#table };
  }

  openRow(): void {
    if (this.#table) this.#table.cells = [];
  }

  openCell(): void {
    this.#table?.cells.push(this.all.length);
  }

  /** Makes one line of a row's cells, unless one has several paragraphs, as where a table only says what stands where. */
  closeRow(): void {
    const table = this.#table;
    if (!table) return;
    const { cells: starts } = table;
    table.cells = [];
    const isHead = table.rows++ === 0;
    const cells = starts.map((start, index) => this.all.slice(start, starts[index + 1]));
    const filled = cells.flat();
    if (cells.length < 2 || cells.some((cell) => cell.length > 1) || filled.some(({ kind }) => kind !== 'text')) return;
    const [first] = filled;
    this.all.length = starts[0] ?? 0;
    if (!first) return;
    const texts = cells.map(([cell]) => cell?.text.replace(/\s+/g, ' ').replaceAll('|', '\\|') ?? '');
    this.all.push({ ...first, text: `| ${texts.join(' | ')} |`, kind: 'row' });
    if (isHead) this.all.push({ ...first, text: `|${' --- |'.repeat(texts.length)}`, kind: 'row' });
  }

  closeTable(): void {
    this.#table = this.#table?.outer ?? null;
  }
}

/** A heading of a level from 1 to 6. */
export function headingText(level: number, text: string): string {
  return `${'#'.repeat(level)} ${text.replace(/\s+/g, ' ').trim()}`;
}

/** Text that is no heading and must not look like one. */
export function bodyText(text: string): string {
  return text.replace(/^( {0,3})(?=#{1,6}(?:[ \t]|$))/gm, '$1\\');
}

/** Preformatted text, in which nothing means anything to Markdown: neither comments nor lines of dashes are headings. */
export function codeText(text: string): string {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, marks) => Math.max(most, marks.length), 2);
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** The blocks with empty lines between them; items of a list and rows of a table follow one another. */
export function joinBlocks(blocks: readonly Block[]): string {
  return blocks
    .map(({ text, kind }, index) => {
      const last = blocks[index - 1];
      if (!last) return text;
      return `${last.kind === kind && (kind === 'item' || kind === 'row') ? '\n' : '\n\n'}${text}`;
    })
    .join('');
}
