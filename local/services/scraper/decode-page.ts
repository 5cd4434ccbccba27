import { isUtf8 } from 'node:buffer';
import { decodeBuffer } from 'encoding-sniffer';

/** The text of a page's bytes, in the charset that its header, its mark or itself names. */
export function decodePage(body: Buffer, contentType: string): string {
  const label = /charset\s*=\s*["']?([^\s"';]+)/i.exec(contentType)?.[1];
  // Pages that name no charset are taken for UTF-8 where they can be, since browsers' own guess dates from before it.
  return decodeBuffer(body, {
    ...(label === undefined ? {} : { transportLayerEncodingLabel: label }),
    defaultEncoding: isUtf8(body) ? 'utf-8' : 'windows-1252',
  });
}

/** Whether a content type is that of HTML; a missing one is. */
export function isHtml(contentType: string): boolean {
  return /^(?:text\/html|application\/xhtml\+xml)\b|^$/i.test(contentType.trim());
}
