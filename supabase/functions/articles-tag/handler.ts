import { z } from 'zod';
import { articleQuestion, articleText } from '../_articles/article-question.ts';
import { readTags, type Tag } from '../_articles/sorting-rows.ts';
import { defineStage, type FinishContext, type HandlerContext, RetriableError, Waiting } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { articles } from '../_pipelines/articles.ts';
import { type TagResult, tagResult } from '../_pipelines/articles-results.ts';
import { prompt } from './prompt.ts';

const mostTags = 5;

const input = z.object({ entity: articleText });
const answerOf = <Name extends z.ZodType<string>>(name: Name) =>
  z.object({
    tags: z.array(name).min(1).max(mostTags).describe('The tags that say what the article is about, the best first'),
  });
const readAnswer = finishAnswer(answerOf(z.string()));

/** Chooses an article's tags from the rows of `tag`. Throws a StageError. */
export async function chooseTags(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<TagResult | Waiting> {
  const tags = await readTags(context);
  const schema = answerOf(z.enum(tags.map(({ name }) => name)).describe(meanings(tags)));
  const chosen = await askModel({ name: 'tags', schema, prompt, input: articleQuestion(entity) }, context);
  return chosen instanceof Waiting ? chosen : known(chosen.tags, tags);
}

/** The tags that a job of the model ended with. Throws a StageError. */
export async function finishTags(job: unknown, context: FinishContext): Promise<TagResult> {
  const { tags } = await readAnswer(job, context);
  return known(tags, await readTags(context));
}

export const tagStage = defineStage({
  pipeline: articles,
  stage: 'tag',
  input,
  output: tagResult,
  handler: chooseTags,
  services: [model],
  finish: finishTags,
  settings: [modelSettings],
});

/** The meanings of the tags. They are part of the answer's form, so the article is the only material. */
function meanings(tags: readonly Tag[]): string {
  return tags.flatMap(({ name, description }) => (description ? [`${name}: ${description}`] : [])).join('; ');
}

/** Of these the tags that there are, each once. */
function known(chosen: readonly string[], tags: readonly Tag[]): TagResult {
  const names = [...new Set(chosen)].filter((name) => tags.some((tag) => tag.name === name));
  if (names.length > 0) return { tags: names };
  throw new RetriableError('invalid_output', 'The model chose no tag that there is.');
}
