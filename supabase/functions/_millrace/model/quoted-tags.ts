import { createHash } from 'node:crypto';

// Characters that a reader may take for the beginning of a tag: lookalikes of <, and its spellings in HTML, JSON and
// URLs.
const opener = '<＜﹤‹˂ᐸ〈\u2329⟨❬❮❰⧼⦑⋖≮≺«《⟪≪';
const pieces = new RegExp(`&(?:amp;)?(?:lt|#0{0,6}60|#x0{0,6}3c);?|\\\\u003c|%3c|[${opener}]|[\\p{L}\\p{N}]`, 'giu');
// Letters of other scripts that look like those a tag is made of; Unicode's own compatibility forms come on top.
const lookalikes = new Map(
  'аa сc еe ԁd гr һh іi јj кk ӏl мm пn оo рp ԛq ѕs тt уy ԝw хx αa βb εe ηn ιi κk νv οo ρp τt υu χx ωw ɑa ɡg ıi օo ոn սu'
    .split(' ')
    .map(([even = '', odd = '']) => [even, odd]),
);
const markLength = 8;

/** A text as a careless reader sees it: letters and digits without case, accents and script, and each < there is. */
interface Skeleton {
  text: string;
  /** Where in the text each of these lies: its start and its length. */
  places: [start: number, length: number][];
}

/**
 * The text with no tag of this name in it, however it is spelled: the < before the name becomes a parenthesis. Any other <, as
 * of code and of prices, stays. Takes time in proportion to the text.
 */
export function withoutTag(tag: string, text: string): string {
  const { text: bare, places } = skeletonOf(text);
  const name = skeletonOf(tag).text;
  let harmless = '';
  let from = 0;
  for (let at = bare.indexOf(name); at >= 0; at = bare.indexOf(name, at + name.length)) {
    let first = at;
    while (bare.charAt(first - 1) === '<') first--;
    for (const [start, length] of places.slice(first, at)) {
      harmless += `${text.slice(from, start)}(`;
      from = start + length;
    }
  }
  return harmless + text.slice(from);
}

/**
 * A word that does not stand in the text, however it is spelled, and is the same whenever the text is: eight digits and
 * letters from a to f.
 */
export function absentMark(text: string): string {
  const { text: bare } = skeletonOf(text);
  for (let tries = 0; ; tries++) {
    const mark = createHash('sha256').update(`${tries} ${text}`).digest('hex').slice(0, markLength);
    if (!bare.includes(mark)) return mark;
  }
}

function skeletonOf(text: string): Skeleton {
  let bare = '';
  const places: Skeleton['places'] = [];
  for (const { 0: piece, index } of text.matchAll(pieces)) {
    const letters = plainLetters(piece);
    bare += letters;
    for (let count = 0; count < letters.length; count++) places.push([index, piece.length]);
  }
  return { text: bare, places };
}

function plainLetters(piece: string): string {
  if (/^[a-z0-9]$/.test(piece)) return piece;
  if (!/^[\p{L}\p{N}]/u.test(piece) || opener.includes(piece)) return '<';
  const letters = piece
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
  return [...letters].map((letter) => lookalikes.get(letter) ?? letter).join('');
}
