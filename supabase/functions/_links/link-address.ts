import { excerpt, PermanentError } from '../_millrace/mod.ts';

/** Boards at which the canonical address of a posting is one that they serve. */
const boards =
  /^(?:www\.linkedin\.com|www\.indeed\.com|boards\.(?:eu\.)?greenhouse\.io|jobs\.(?:eu\.)?lever\.co|jobs\.ashbyhq\.com)$/;
/** Blanks of any width, those of none included, and marks of a text's direction: public.canonical_address() has the same. */
const blanks =
  /^[\s\u0085\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f]+|[\s\u0085\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f]+$/g;
const withoutScheme = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?(?:\/\S*)?$/i;

/** The fields of a link that say where it leads. */
export interface LinkAddress {
  raw_url: string;
  canonical_url: string;
}

/**
 * Where a link's page is to be had: at a known board its canonical address; elsewhere as it was written, since a site need not
 * answer to another spelling. Throws the PermanentError `invalid_url`.
 */
export function linkAddress({ raw_url, canonical_url }: LinkAddress): URL {
  const canonical = webUrl(canonical_url);
  if (canonical && boards.test(canonical.hostname)) return canonical;
  const text = raw_url.replace(blanks, '');
  const url = webUrl(withoutScheme.test(text) ? `https://${text}` : text);
  if (url) return url;
  throw new PermanentError(
    'invalid_url',
    `raw_url is ${JSON.stringify(excerpt(text, 200))}, which is no web address: correct it as https://example.com/jobs/1 and ` +
      'write status new.',
  );
}

function webUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url && /^https?:$/.test(url.protocol) && url.hostname !== '' ? url : null;
}
