import { PermanentError } from '../_millrace/mod.ts';
import type { StagePostResult } from '../_pipelines/links-results.ts';
import { languageOf } from './language.ts';
import { momentOf } from './moments.ts';
import { fieldText, readableText } from './page-text.ts';
import type { RawPage } from './read-job.ts';
import { nodesOfType, textOf } from './schema-nodes.ts';

const longestText = 50_000;
const posts = /(?:Posting|Article|Comment|Message|CreativeWork)$/;

/**
 * Reads a post from a page, with author and language. Throws the PermanentError `no_content` for a page without text.
 */
export function readPost({ html, parts, url, doubts = [] }: RawPage): StagePostResult {
  const node = nodesOfType(parts.json_ld, posts).find((one) => !/JobPosting/.test(String(one['@type'])));
  const og = parts.open_graph;
  const said = textOf(node?.articleBody) ?? textOf(node?.text);
  const body = said === null ? '' : fieldText(said, longestText);
  const text = body || readableText(html, longestText) || og['og:description'] || '';
  if (text === '')
    throw new PermanentError('no_content', `${url}: the page has no text. Write queued to fetch it anew.`);
  const titled = /^(.{1,100}?) (?:on|auf|sur|en) LinkedIn\b/.exec(og['og:title'] || parts.title)?.[1];
  const author = textOf(node?.author, 'name') ?? titled ?? (og['article:author'] || parts.meta.author || null);
  return {
    kind: 'post',
    author: author && fieldText(author, 200),
    text,
    language: languageOf(text, textOf(node?.inLanguage, 'alternateName') ?? parts.language),
    extras: {
      read_from: body ? 'json_ld' : text === og['og:description'] ? 'open_graph' : 'text',
      published_at: momentOf(
        textOf(node?.datePublished) ?? (og['article:published_time'] || null),
        'datePublished',
        [],
      ),
      ...(doubts.length === 0 ? {} : { problems: doubts }),
    },
  };
}
