import { z } from 'zod';

/** The result of a poll of a source of links; `public.apply_link_polls` reads it. */
export const linkPollResult = z.object({
  /** How many links it brought that were not known. */
  found: z.int().nonnegative(),
  /** Whether the next poll goes on at once. */
  more: z.boolean(),
  /** The problem with the source, and its remedy; null where there is none. */
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** How long the service wants to be left alone. */
  wait_seconds: z.number().nonnegative().nullable(),
});
