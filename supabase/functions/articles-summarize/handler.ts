import { z } from 'zod';
import { articleQuestion, articleText } from '../_articles/article-question.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { articles } from '../_pipelines/articles.ts';
import { summaryResult } from '../_pipelines/articles-results.ts';
import { prompt } from './prompt.ts';

const input = z.object({ entity: articleText });

/** Says in a few sentences what an article says. */
export function summarize({ entity }: z.output<typeof input>, context: HandlerContext) {
  return askModel({ name: 'summary', schema: summaryResult, prompt, input: articleQuestion(entity) }, context);
}

export const summarizeStage = defineStage({
  pipeline: articles,
  stage: 'summarize',
  input,
  output: summaryResult,
  handler: summarize,
  services: [model],
  finish: finishAnswer(summaryResult),
  settings: [modelSettings],
});
