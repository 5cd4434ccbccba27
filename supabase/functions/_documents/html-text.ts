import { utf16Of } from '../_services/text/decode-text.ts';
import { hasMarkdownMarks } from './markdown-text.ts';

// In front of what tells the type may stand a comment as long as a licence.
const probeBytes = 8192;

const beforeMarkup = /^(?:\s+|<\?xml[^>]*>|<!--[\s\S]*?-->)*/;
const page = /^<(?:!doctype\s+html|html|head|body|title|meta)\b/i;
const piece = /^<(?:h[1-6]|p|div|section|article|main|header|nav|ul|ol|table|script|style|span|center|font|a|b|br)\b/i;

/** Whether a file of text is HTML, by its beginning. Markdown may begin with a piece of HTML as well. */
export function isHtml(head: Uint8Array): boolean {
  const text = new TextDecoder(utf16Of(head) ?? 'utf-8').decode(head.subarray(0, probeBytes)).replace(beforeMarkup, '');
  return page.test(text) || (piece.test(text) && !hasMarkdownMarks(text));
}
