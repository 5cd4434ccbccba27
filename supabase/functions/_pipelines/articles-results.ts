import { z } from 'zod';

// The result of each stage of `articles`; the stage's apply function writes it into the article's row.

export const fetchResult = z.object({
  title: z.string().min(1),
  /** Markdown. */
  content: z.string().min(1),
  /** Where the page wants to be found; else where it was found. */
  canonical_url: z.string(),
  image_url: z.string().nullable(),
  author: z.string().nullable(),
  published_at: z.iso.datetime().nullable(),
  language: z.string().nullable(),
  by: z.enum(['page', 'pdf']),
  /** Doubts about its letters, such as a charset that was guessed. */
  doubts: z.array(z.string()).optional(),
});
export type FetchResult = z.output<typeof fetchResult>;

export const scoreResult = z.object({
  /** How near the article is to its topic, from 0 to 1. */
  score: z.number().min(0).max(1),
  topic_id: z.string(),
  threshold: z.number(),
  relevant: z.boolean(),
  by: z.enum(['embeddings', 'model']),
});
export type ScoreResult = z.output<typeof scoreResult>;

// A description is part of the question to the model: it says what to write there.
export const summaryResult = z.object({
  summary: z.string().min(1).max(1200).describe('What the article says, in two to four sentences'),
});

export const tagResult = z.object({ tags: z.array(z.string().min(1)).min(1).max(5) });
export type TagResult = z.output<typeof tagResult>;

export const thumbnailResult = z.object({
  thumbnail_url: z.string(),
  from: z.enum(['image', 'card']),
  /** Why there is a card in the place of the page's image. */
  reason: z.string().nullable(),
});
export type ThumbnailResult = z.output<typeof thumbnailResult>;

/** The fields of an article that the site shows. */
export const publishResult = z.object({
  slug: z.string().min(1),
  title: z.string().min(1),
  summary: z.string().nullable(),
  tags: z.array(z.string()),
  thumbnail_url: z.string().nullable(),
  url: z.string().nullable(),
  /** Whether the site is to be told of it. */
  notify: z.boolean(),
});
export type PublishResult = z.output<typeof publishResult>;
