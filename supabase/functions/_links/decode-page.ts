import { gunzipSync } from 'fflate';
import { PermanentError } from '../_millrace/mod.ts';
import { type DecodedText, decodeText } from '../_services/text/decode-text.ts';

const mostBytes = 8 * 1024 * 1024;

/**
 * The HTML of a page's gzipped bytes, by its mark, header, declaration and bytes. Throws the PermanentError `too_large`, and
 * `invalid_output` for what is not gzipped.
 */
export function decodePage(gzipped: Uint8Array, contentType: string): DecodedText {
  return decodeText(unzipped(gzipped), { contentType, kind: 'html' });
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
