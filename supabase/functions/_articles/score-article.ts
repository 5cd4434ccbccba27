import { z } from 'zod';
import {
  type Env,
  excerpt,
  type FinishContext,
  type HandlerContext,
  PermanentError,
  readSettings,
  Waiting,
} from '../_millrace/mod.ts';
import { cosineSimilarity, embedTexts } from '../_millrace/model/embeddings.ts';
import { askModel, finishAnswer } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { type Prompt, quote, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';
import type { ScoreResult } from '../_pipelines/articles-results.ts';
import { readTopics, type Topic } from './sorting-rows.ts';

/** How articles are scored. */
export const scoreSettings = z.object({
  ARTICLES_SCORE_BY: z
    .enum(['embeddings', 'model'], { error: 'must be embeddings or model' })
    .default('embeddings')
    .describe('set embeddings (the likeness of text and topic) or model (its judgement)'),
  ARTICLES_SCORE_THRESHOLD: z
    .string()
    .regex(/^(?:0(?:\.\d+)?|1(?:\.0+)?)$/, 'must be a number from 0 to 1, such as 0.3')
    .transform(Number)
    .optional()
    .describe('set from which score on an article counts, from 0 to 1, or remove it'),
});

/** Likeness is low between a long text and a short one, and a judgement is not. */
const usualThreshold = { embeddings: 0.25, model: 0.5 };
const longestRead = 12_000;

/** The fields of an article that are scored. */
export interface ScoredText {
  title: string | null;
  content: string | null;
  summary: string | null;
}

const judgement = z.object({
  topic: z.string(),
  relevance: z.number().min(0).max(1).describe('How much the article is about that topic: 0 not at all, 1 entirely'),
});
const readJudgement = finishAnswer(judgement);

const prompt: Prompt = {
  label: 'score-1',
  instructions: `You decide whether an article is about one of the topics that the editors named.

Choose the topic that fits best and say how much the article is about it. An article that only mentions a topic is not about it.

${UNTRUSTED_NOTE}`,
};

/** Scores an article as the settings say: at once, or by a job of the model. Throws a StageError. */
export async function scoreArticle(article: ScoredText, context: HandlerContext): Promise<ScoreResult | Waiting> {
  const { ARTICLES_SCORE_BY: by } = readSettings(scoreSettings, context.env);
  const topics = await readTopics(context);
  if (by === 'embeddings') return scoreByLikeness(article, topics, context);
  const meanings = topics.map(({ name, description }) => `${name}: ${description}`).join('; ');
  const topic = z.enum(topics.map(({ name }) => name)).describe(`The topic that fits best. ${meanings}`);
  const schema = judgement.extend({ topic });
  const question = quote('article', textOf(article), longestRead);
  const answer = await askModel({ name: 'relevance', schema, prompt, input: question }, context);
  return answer instanceof Waiting ? answer : judged(answer, topics, context.env);
}

/** The score that a job of the model ended with. Throws a StageError. */
export async function finishScore(job: unknown, context: FinishContext): Promise<ScoreResult> {
  const answer = await readJudgement(job, context);
  return judged(answer, await readTopics(context), context.env);
}

/** The settings without which scoring cannot work, whichever way. */
export const neededToScore = [scoreSettings, modelSettings.pick({ LLM_URL: true })];

async function scoreByLikeness(article: ScoredText, topics: Topic[], context: HandlerContext): Promise<ScoreResult> {
  const texts = topics.map(({ name, description }) => `${name}\n${description}`);
  const [own = [], ...others] = await embedTexts([textOf(article), ...texts], context);
  const scores = others.map((vector) => Math.min(1, Math.max(0, cosineSimilarity(own, vector))));
  const score = Math.max(...scores);
  return withVerdict(score, topics[scores.indexOf(score)] as Topic, 'embeddings', context.env);
}

function judged({ topic, relevance }: z.output<typeof judgement>, topics: Topic[], env: Env): ScoreResult {
  const named = topics.find(({ name }) => name === topic);
  // A topic that was renamed or removed since, or that the model made up: the article is about none that there is.
  return withVerdict(named ? relevance : 0, named ?? (topics[0] as Topic), 'model', env);
}

function withVerdict(score: number, topic: Topic, by: ScoreResult['by'], env: Env): ScoreResult {
  const threshold = readSettings(scoreSettings, env).ARTICLES_SCORE_THRESHOLD ?? usualThreshold[by];
  return { score, topic_id: topic.id, threshold, relevant: score >= threshold, by };
}

function textOf({ title, summary, content }: ScoredText): string {
  const text = [title, content ?? summary].filter((part) => part?.trim()).join('\n\n');
  if (text !== '') return excerpt(text, longestRead);
  throw new PermanentError('no_content', 'The article has neither title nor content: write its text into content.');
}
