import { getEncoding } from 'encoding-sniffer/sniffer';
import { utf16Mark } from '../_services/text/decode-text.ts';
import { hasMarkdownMarks } from './markdown-text.ts';

// In front of what tells the type may stand a comment as long as a licence.
const probeBytes = 8192;
const mostCharsetBytes = 1024;

const beforeMarkup = /^(?:\s+|<\?xml[^>]*>|<!--[\s\S]*?-->)*/;
const page = /^<(?:!doctype\s+html|html|head|body|title|meta)\b/i;
const piece = /^<(?:h[1-6]|p|div|section|article|main|header|nav|ul|ol|table|script|style|span|center|font|a|b|br)\b/i;

/** Whether a file of text is HTML, by its beginning. Markdown may begin with a piece of HTML as well. */
export function isHtml(head: Uint8Array): boolean {
  const text = decodeHtml(head.subarray(0, probeBytes)).replace(beforeMarkup, '');
  return page.test(text) || (piece.test(text) && !hasMarkdownMarks(text));
}

/** The text of HTML in the code that its byte order mark or its own declaration names; without one UTF-8 where it can be. */
export function decodeHtml(bytes: Uint8Array): string {
  const named = getEncoding(bytes, {
    maxBytes: mostCharsetBytes,
    defaultEncoding: isUtf8(bytes) ? 'utf-8' : 'windows-1252',
  });
  return new TextDecoder(utf16Mark(bytes) ?? named).decode(bytes);
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
