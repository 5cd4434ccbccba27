// Sets a text on small pages, for the sample PDF and the sample scan.
import { pageSize } from '../books/page-maker.ts';
import { breakLines, type Piece } from '../books/type-lines.ts';
import type { Block } from './read-blocks.ts';

const left = 56;
const width = pageSize.width - 2 * left;
const firstBaseline = 72;
const lastBaseline = 535;
const body = { size: 11, leading: 15.5 };
/** By level, from 1. */
const headingSizes = [18, 14];

/** Returns the lines of each page, with their places. A heading of level 1 begins a page. Tables are no part of this. */
export function setPages(blocks: Block[]): Piece[][] {
  const pages: Piece[][] = [];
  let y = Infinity;
  for (const block of blocks) {
    if (block.kind === 'table') throw new Error('A table cannot be set on pages: write it as a paragraph.');
    const heading = block.kind === 'heading';
    const size = heading ? (headingSizes[block.level - 1] ?? body.size) : body.size;
    const leading = heading ? size * 1.3 : body.leading;
    const words = block.text.split(/\s+/).map((text) => ({ text, bold: heading }));
    const lines = breakLines(words, { left, width, size, indent: 0 });
    // Two lines of its text stay with a heading.
    const below = heading ? 2 * body.leading : 0;
    if (heading && y !== firstBaseline) y += body.leading * 0.4;
    if ((heading && block.level === 1) || y + below > lastBaseline) y = open();
    for (const { pieces } of lines) {
      if (y > lastBaseline) y = open();
      pages.at(-1)?.push(...pieces.map((piece) => ({ ...piece, y })));
      y += leading;
    }
    y += body.leading * 0.5;
  }
  return pages;

  function open(): number {
    pages.push([]);
    return firstBaseline;
  }
}
