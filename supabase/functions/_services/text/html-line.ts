import { Parser } from 'htmlparser2';

const entity = /&(?:[a-z][a-z0-9]*|#\d+|#x[0-9a-f]+);/gi;
const mostTurns = 2;

/**
 * A text whose entities are written out, even those that were escaped twice; what is no entity stays.
 *
 * @example
 * ```ts
 * withoutEntities('It&amp;#8217;s Q&A'); // 'It’s Q&A'
 * ```
 */
export function withoutEntities(text: string): string {
  let line = text;
  for (let turn = 0; turn < mostTurns && line.search(entity) >= 0; turn++) line = line.replace(entity, textOf);
  return line;
}

/**
 * The text of a line of HTML, without its tags.
 *
 * @example
 * ```ts
 * htmlLine('Nuts &amp; <b>bolts</b>'); // 'Nuts & bolts'
 * ```
 */
export function htmlLine(html: string): string {
  return withoutEntities(textOf(html));
}

function textOf(html: string): string {
  let text = '';
  const parser = new Parser({ ontext: (piece) => (text += piece) });
  parser.write(html);
  parser.end();
  return text;
}
