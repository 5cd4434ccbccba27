import { getEncoding } from 'encoding-sniffer/sniffer';
import { gunzipSync } from 'fflate';
import { PermanentError } from '../_millrace/mod.ts';

const mostBytes = 8 * 1024 * 1024;

/**
 * The HTML of a page's gzipped bytes, in the charset that its header, its mark or itself names; else UTF-8 where it can be.
 * Throws the PermanentError `too_large`, and `invalid_output` for what is not gzipped.
 */
export function decodePage(gzipped: Uint8Array, contentType: string): string {
  const bytes = unzipped(gzipped);
  const label = /charset\s*=\s*["']?([^\s"';]+)/i.exec(contentType)?.[1];
  const named = getEncoding(bytes, {
    ...(label === undefined ? {} : { transportLayerEncodingLabel: label }),
    defaultEncoding: isUtf8(bytes) ? 'utf-8' : 'windows-1252',
  });
  return new TextDecoder(named).decode(bytes);
}

function unzipped(gzipped: Uint8Array): Uint8Array {
  // The last four bytes say how long it is; what says less than it is, fflate cuts off.
  const length =
    gzipped.length < 18 ? 0 : new DataView(gzipped.buffer, gzipped.byteOffset).getUint32(gzipped.length - 4, true);
  if (length > mostBytes) {
    throw new PermanentError('too_large', `The page has ${length} bytes, more than the ${mostBytes} that are read.`);
  }
  try {
    return gunzipSync(gzipped, { out: new Uint8Array(length) });
  } catch {
    throw new PermanentError('invalid_output', 'The page’s bytes are not gzipped: check the scraper’s version.');
  }
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
