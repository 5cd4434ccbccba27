import { Parser } from 'htmlparser2';
import { excerpt, storableText } from '../_millrace/errors.ts';

// The parser's work grows with the depth. Nothing that people read comes near.
const deepest = 1000;
const unread = new Set([
  'script',
  'title',
  'style',
  'noscript',
  'template',
  'svg',
  'iframe',
  'nav',
  'footer',
  'aside',
  'form',
  'button',
  'select',
  'head',
]);
const advertising =
  /(?:^|[\s_-])(?:ads?|advert\w*|sponsor\w*|promo\w*|banner|cookie\w*|related|similar|recommend\w*)(?:$|[\s_-])/i;
const blocks = /^(?:p|div|section|article|main|header|h[1-6]|li|ul|ol|dl|dt|dd|tr|table|blockquote|pre|br|hr|figure)$/;
const voids = /^(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)$/;

const headings = /^h[1-6]$/;

/**
 * Returns the visible text of a page or a piece of HTML, line by line, without navigation and advertisements.
 *
 * @param skip `headings` leaves the headings out, too.
 */
export function readableText(html: string, longest: number, skip: 'headings' | 'nothing' = 'nothing'): string {
  const inMain: string[] = [];
  const all: string[] = [];
  const open: { skipped: boolean; main: boolean }[] = [];
  let length = 0;
  const write = (text: string) => {
    const at = open.at(-1);
    if (at?.skipped || length > longest * 4) return;
    length += text.length;
    all.push(text);
    if (at?.main) inMain.push(text);
  };
  const parser = new Parser({
    onopentag(name, { class: classes = '', id = '' }) {
      if (blocks.test(name)) write('\n');
      if (voids.test(name)) return;
      const above = open.at(-1) ?? { skipped: false, main: false };
      const skipped =
        above.skipped ||
        open.length > deepest ||
        unread.has(name) ||
        (skip === 'headings' && headings.test(name)) ||
        (name !== 'body' && advertising.test(`${classes} ${id}`));
      open.push({ skipped, main: above.main || name === 'main' || name === 'article' });
    },
    ontext: write,
    onclosetag(name) {
      if (!voids.test(name)) open.pop();
      if (blocks.test(name)) write('\n');
    },
  });
  parser.write(html);
  parser.end();
  const main = tidy(inMain.join(''), longest);
  return main === '' ? tidy(all.join(''), longest) : main;
}

/** The text of a field that may be HTML, escaped even twice. */
export function fieldText(value: string, longest: number): string {
  let text = value;
  for (let turn = 0; turn < 2 && /<[a-z/!][^>]*>|&(?:[a-z][a-z0-9]*|#\d+|#x[0-9a-f]+);/i.test(text); turn++)
    text = readableText(text, longest);
  return tidy(text, longest);
}

function tidy(text: string, longest: number): string {
  const lines = storableText(text)
    .split('\n')
    .map((line) => line.replace(/\s+/g, ' ').trim());
  const whole = lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  return excerpt(whole, longest);
}
