import { z } from 'zod';
import { isOwnFailure } from '../_articles/feeds/feed-failure.ts';
import { feedSettings } from '../_articles/feeds/feed-settings.ts';
import { pollSource } from '../_articles/feeds/poll-source.ts';
import { postponeSource, unknownUrls } from '../_articles/feeds/queue-rows.ts';
import { StageError, storableText } from '../_millrace/errors.ts';
import { defineStage, type HandlerContext, readSettings } from '../_millrace/mod.ts';
import { systemResolve } from '../_millrace/public-hosts.ts';
import { sources } from '../_pipelines/sources.ts';
import { pollResult } from '../_pipelines/sources-results.ts';

/** Bounds of one poll, within a worker's limits; the next poll takes the rest. */
const limits = { entries: 10_000, bytes: 900_000, documents: 20, ms: 20_000 };
const timeoutMs = 20_000;
/** Tries in a row of a failure that may pass, before the source waits for its next poll. */
const tries = 3;
/** A longer wait than this is the source's, and not the attempt's. */
const longestRetryMs = 60_000;

const text = z.string().nullable();
const input = z.object({
  entity: z.object({ id: z.string(), address: z.string(), etag: text, last_modified: text, cursor: z.unknown() }),
});

/**
 * Polls a source. A problem with the source is a result: the row shows it, and the source is due again after its
 * interval.
 */
export async function pollFeed(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<z.input<typeof pollResult>> {
  const { env, signal, retryCount } = context;
  const { FEED_ALLOW_HOSTS: allowed, SOURCE_NEW_URLS: newUrls } = readSettings(feedSettings, env);
  if (retryCount > 0) {
    // Should this attempt end the worker too, the row says so all the same.
    const said = `Polling it was cut off ${retryCount} times (select * from millrace.timeline(${context.run})).`;
    await postponeSource(entity.id, said, env, signal);
  }
  try {
    const { problem, waitMs, ...poll } = await pollSource(entity, {
      access: { allowed, resolve: systemResolve, signal, timeoutMs, traced: context },
      limits: { ...limits, newUrls },
      unknown: (urls) => unknownUrls(urls, env, signal),
      now: () => new Date(),
    });
    return { ...poll, error: problem, wait_seconds: seconds(waitMs) };
  } catch (error) {
    if (!(error instanceof StageError) || isOwnFailure(error) || isTriedAgain(error, retryCount)) throw error;
    const { code, message, retryAfterMs } = error;
    const wait_seconds = seconds(retryAfterMs ?? null);
    // The message may quote what a site wrote, such as a NUL.
    return { urls: [], more: false, error: { code, message: storableText(message) }, wait_seconds, state: null };
  }
}

export const poll = defineStage({
  pipeline: sources,
  stage: 'poll',
  input,
  output: pollResult,
  handler: pollFeed,
  settings: [feedSettings],
});

function isTriedAgain({ permanent, retryAfterMs = 0 }: StageError, retryCount: number): boolean {
  return !permanent && retryCount < tries - 1 && retryAfterMs <= longestRetryMs;
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : Math.ceil(ms / 1000);
}
