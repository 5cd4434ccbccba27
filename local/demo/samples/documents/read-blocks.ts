// Reads the little Markdown that the samples are written in: headings, paragraphs and tables, parted by empty lines.

export type Block =
  | { kind: 'heading'; level: number; text: string }
  | { kind: 'paragraph'; text: string }
  | { kind: 'table'; rows: string[][] };

/** Returns the blocks of a text, in order; the first row of a table is its head. */
export function readBlocks(markdown: string): Block[] {
  return markdown
    .split(/\n\s*\n/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map(readBlock);
}

function readBlock(block: string): Block {
  const heading = /^(#+) (.*)$/.exec(block);
  if (heading) return { kind: 'heading', level: heading[1]?.length ?? 1, text: heading[2] ?? '' };
  if (!block.startsWith('|')) return { kind: 'paragraph', text: block };
  const rows = block.split('\n').filter((line) => !/^[|\s-]+$/.test(line));
  const cells = (row: string) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
  return { kind: 'table', rows: rows.map(cells) };
}
