import { createHash } from 'node:crypto';
import { type Bitmap, emptyBitmap } from './bitmap.ts';
import { drawableText, glyphHeight, glyphOf, glyphWidth } from './letters.ts';

type Colour = readonly [red: number, green: number, blue: number];

const width = 640;
const height = 360;
const margin = 40;
const mostLines = 6;
const dotSizes = [7, 6, 5, 4, 3];
const tile = 40;

/**
 * Draws a picture for an article that has none: its title on tiles of a colour that the title decides, or the tiles alone where
 * its letters cannot be drawn. The same title always has the same card.
 */
export function drawCard(title: string): Bitmap {
  const hash = createHash('sha256').update(title).digest();
  const card = emptyBitmap(width, height);
  const hue = hash.readUInt16LE(0) % 360;
  for (let y = 0, index = 0; y < height; y += tile) {
    for (let x = 0; x < width; x += tile, index++) {
      const shade = ((hash[index % hash.length] ?? 0) ^ (index * 37)) & 15;
      fill(card, x, y, tile, tile, colour(hue, 0.45, 0.22 + shade / 200));
    }
  }
  const { lines, dot } = setText(drawableText(title));
  const lineHeight = (glyphHeight + 2) * dot;
  const top = Math.round((height - lines.length * lineHeight) / 2);
  for (const [index, line] of lines.entries()) drawLine(card, line, top + index * lineHeight, dot);
  return card;
}

/** The text in lines, in the largest letters that leave room for all of it; cut where even the smallest do not. */
function setText(text: string): { lines: string[]; dot: number } {
  for (const dot of dotSizes) {
    const columns = Math.floor((width - 2 * margin) / ((glyphWidth + 1) * dot));
    const lines = wrap(text, columns);
    const isSmallest = dot === dotSizes.at(-1);
    const fits = lines.length <= mostLines && lines.length * (glyphHeight + 2) * dot <= height - margin;
    if (fits || isSmallest) return { lines: lines.slice(0, mostLines), dot };
  }
  return { lines: [], dot: 1 };
}

function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ').filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else for (let at = 0; at < word.length; at += columns) lines.push(word.slice(at, at + columns));
  }
  return lines;
}

function drawLine(card: Bitmap, line: string, top: number, dot: number): void {
  for (const [place, letter] of [...line].entries()) {
    const left = margin + place * (glyphWidth + 1) * dot;
    for (const [row, bits] of (glyphOf(letter) ?? []).entries()) {
      for (let column = 0; column < glyphWidth; column++) {
        const isSet = (bits >> (glyphWidth - 1 - column)) & 1;
        if (isSet) fill(card, left + column * dot, top + row * dot, dot, dot, [255, 255, 255]);
      }
    }
  }
}

function fill({ data }: Bitmap, left: number, top: number, across: number, down: number, [r, g, b]: Colour): void {
  for (let y = top; y < Math.min(height, top + down); y++) {
    for (let x = left; x < Math.min(width, left + across); x++) data.set([r, g, b, 255], (y * width + x) * 4);
  }
}

function colour(hue: number, saturation: number, lightness: number): Colour {
  const strength = saturation * Math.min(lightness, 1 - lightness);
  const channel = (offset: number) => {
    const at = (offset + hue / 30) % 12;
    return Math.round(255 * (lightness - strength * Math.max(-1, Math.min(at - 3, 9 - at, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
