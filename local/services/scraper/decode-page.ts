import { type DecodedText, decodeText } from '../../../supabase/functions/_services/text/decode-text.ts';

/** Returns a page's bytes as text, by its mark, header, declaration and bytes. */
export function decodePage(body: Uint8Array, contentType: string): DecodedText {
  return decodeText(body, { contentType, kind: isHtml(contentType) ? 'html' : 'text' });
}

/** Returns whether a content type is that of HTML; a missing one is. */
export function isHtml(contentType: string): boolean {
  return /^(?:text\/html|application\/xhtml\+xml)\b|^$/i.test(contentType.trim());
}
