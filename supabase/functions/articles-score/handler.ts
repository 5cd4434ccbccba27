import { z } from 'zod';
import { finishScore, neededToScore, scoreArticle } from '../_articles/score-article.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { model } from '../_millrace/model/model.ts';
import { articles } from '../_pipelines/articles.ts';
import { scoreResult } from '../_pipelines/articles-results.ts';

const text = z.string().nullable();
const input = z.object({ entity: z.object({ title: text, summary: text, content: text }) });

/** Says which topic an article is about, and how much. */
export function score({ entity }: z.output<typeof input>, context: HandlerContext) {
  return scoreArticle(entity, context);
}

export const scoreStage = defineStage({
  pipeline: articles,
  stage: 'score',
  input,
  output: scoreResult,
  handler: score,
  services: [model],
  finish: finishScore,
  settings: neededToScore,
});
