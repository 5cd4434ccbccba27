import { z } from 'zod';
import { type Poll, pollSource, type Save } from '../_links/poll-source.ts';
import { linkSource, sourceReader } from '../_links/source-reader.ts';
import { MisconfiguredError, StageError, storableText, UnavailableError } from '../_millrace/errors.ts';
import { defineStage, type Env, type HandlerContext } from '../_millrace/mod.ts';
import { linkSources } from '../_pipelines/link-sources.ts';
import { linkPollResult } from '../_pipelines/link-sources-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

/** Bounds of one poll, within a worker's limits; the next poll takes the rest. */
const limits = { reads: 50, links: 40_000, ms: 20_000 };
/** Tries in a row of a failure that may pass, before the source waits for its next poll. */
const tries = 3;
/** A longer wait than this is the source's, and not the attempt's. */
const longestRetryMs = 60_000;

const input = z.object({ entity: linkSource });
const savedLinks = z.object({ saved: z.boolean(), found: z.int(), too_long: z.string().nullable() });

/**
 * Polls a source. A problem with the source is a result: the row shows it, and the source is due again after its
 * interval.
 */
export async function pollLinks(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<z.input<typeof linkPollResult>> {
  const { env, signal, retryCount } = context;
  if (retryCount > 0) await postpone(entity.id, `Polling it was cut off ${retryCount} times.`, env, signal);
  try {
    const cursor = entity.cursor ?? null;
    const read = sourceReader(entity, context);
    const poll = await pollSource(cursor, read, saver(entity.id, env, signal), limits);
    return { found: poll.found, more: poll.more, ...problemOf(poll), wait_seconds: null };
  } catch (error) {
    if (!(error instanceof StageError) || isTriedAgain(error, retryCount)) throw error;
    const { code, message, retryAfterMs } = error;
    const wait_seconds = retryAfterMs === undefined ? null : Math.ceil(retryAfterMs / 1000);
    // The message may quote a sheet.
    return { found: 0, more: false, error: { code, message: storableText(message) }, wait_seconds };
  }
}

export const poll = defineStage({
  pipeline: linkSources,
  stage: 'poll',
  input,
  output: linkPollResult,
  handler: pollLinks,
});

/** The problem with a source that was read. */
function problemOf({ tooLong, broken }: Poll): { error: { code: string; message: string } | null } {
  if (tooLong !== null) {
    const message = `The link at ${tooLong} is longer than 2,048 bytes and was left out: shorten it.`;
    return { error: { code: 'too_long', message: storableText(message) } };
  }
  if (broken === null) return { error: null };
  const cells = broken.count === 1 ? '1 cell shows' : `${broken.count} cells show`;
  const message =
    `${cells} an error in the place of a link, the first ${broken.text} at ${broken.place}: correct the formula. ` +
    'All other links were taken.';
  return { error: { code: 'broken_cells', message: storableText(message) } };
}

function isTriedAgain(error: StageError, retryCount: number): boolean {
  if (error instanceof UnavailableError) return true;
  if (error.permanent || error instanceof MisconfiguredError) return false;
  return retryCount < tries - 1 && (error.retryAfterMs ?? 0) <= longestRetryMs;
}

function saver(id: string, env: Env, signal: AbortSignal): Save {
  return async (links, before, cursor) => {
    const { data, error, status } = await projectClient(env)
      .rows.rpc('save_links', { p_source_id: id, p_links: links, p_before: before, p_cursor: cursor })
      .abortSignal(signal);
    signal.throwIfAborted();
    if (error) throw projectError(status, error, 'Saving the links');
    return savedLinks.parse(data);
  };
}

async function postpone(id: string, message: string, env: Env, signal: AbortSignal): Promise<void> {
  const { error, status } = await projectClient(env)
    .rows.rpc('postpone_link_source', { p_source_id: id, p_error: message })
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, 'Putting the source off');
}
