import { z } from 'zod';
import { cursorSchema } from '../_articles/feeds/pass.ts';

const text = z.string().nullable();

/** What a poll stores; `public.apply_polls` reads it. */
export const pollResult = z.object({
  /** The articles that the queue does not have. */
  urls: z.array(z.object({ url: z.string(), title: text, published_at: text })),
  /** Whether the next poll goes on where this one left off. */
  more: z.boolean(),
  /** What is wrong with the source, and what to do. */
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** How long the site wants to be left alone. */
  wait_seconds: z.number().nonnegative().nullable(),
  /** What the source keeps; null where it stays as it is. */
  state: z.object({ kind: text, etag: text, last_modified: text, cursor: cursorSchema }).nullable(),
});

export type PollResult = z.output<typeof pollResult>;
