import { z } from 'zod';
import { type Env, excerpt, PermanentError, readSettings } from '../_millrace/mod.ts';
import type { PublishResult } from '../_pipelines/articles-results.ts';
import { siteHookSettings } from './site-hook.ts';

const text = z.string().nullable();

/** The fields of an article that the site shows. */
export const publishable = z.object({
  id: z.string(),
  title: text,
  summary: text,
  tags: z.array(z.string()).nullable(),
  thumbnail_url: text,
  url: text,
  canonical_url: text,
});

const longestSlug = 80;

/**
 * An article as the site is to show it. It becomes a row of `publication` with the stage's completion. Throws the PermanentError
 * `no_title`, or a MisconfiguredError.
 */
export function publicationOf(article: z.output<typeof publishable>, env: Env): PublishResult {
  const { id, title, summary, tags, thumbnail_url, url, canonical_url } = article;
  if (!title?.trim())
    throw new PermanentError('no_title', 'The article has no title: write 300, 310, then 320, and give it one.');
  return {
    slug: slugOf(title, id),
    title: title.trim(),
    summary,
    tags: tags ?? [],
    thumbnail_url,
    url: canonical_url ?? url,
    notify: readSettings(siteHookSettings, env).SITE_HOOK_URL !== undefined,
  };
}

/** The end of an address: the title in plain letters, and the beginning of the article's id, which no other has. */
function slugOf(title: string, id: string): string {
  const words =
    title
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const slug = excerpt(words.join('-'), longestSlug).replace(/-+$/, '');
  return [slug, id.slice(0, 8)].filter(Boolean).join('-');
}
