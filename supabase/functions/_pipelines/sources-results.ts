import { z } from 'zod';
import { cursorSchema } from '../_articles/feeds/pass.ts';

const text = z.string().nullable();

/** The result of a poll; `public.apply_polls` reads it. */
export const pollResult = z.object({
  /** The articles that the queue does not have. */
  urls: z.array(z.object({ url: z.string(), title: text, published_at: text })),
  /** Whether the next poll goes on where this one left off. */
  more: z.boolean(),
  /** The problem with the source, and its remedy; null where there is none. */
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** How long the site wants to be left alone. */
  wait_seconds: z.number().nonnegative().nullable(),
  /** The new state of the source; null leaves it unchanged. */
  state: z.object({ kind: text, etag: text, last_modified: text, cursor: cursorSchema }).nullable(),
});

export type PollResult = z.output<typeof pollResult>;
