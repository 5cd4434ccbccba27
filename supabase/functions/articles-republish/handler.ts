import { z } from 'zod';
import { publicationOf, publishable } from '../_articles/publication.ts';
import { siteHookSettings } from '../_articles/site-hook.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { articles } from '../_pipelines/articles.ts';
import { publishResult } from '../_pipelines/articles-results.ts';

const input = z.object({ entity: publishable });

/** Shows an edited article on the site: the stage’s apply function writes its publication anew. */
export function republish({ entity }: z.output<typeof input>, { env }: HandlerContext) {
  return publicationOf(entity, env);
}

export const republishStage = defineStage({
  pipeline: articles,
  stage: 'republish',
  input,
  output: publishResult,
  handler: republish,
  settings: [siteHookSettings],
});
