import type { SupabaseClient } from '@supabase/supabase-js';
import type { PipelineTypes, Progress, ProgressError } from './progress.ts';
import { watcherOf } from './watcher.ts';

export * from './progress.ts';

export interface WatchOptions<Pipeline extends PipelineTypes = PipelineTypes> {
  pipeline: Pipeline['pipeline'];
  /** The row's key, in the form in which the Data API shows it. */
  key: string | number;
  /** Ends an iteration. */
  signal?: AbortSignal;
}

/** An iteration yields the latest state at each change, and throws a ProgressError where the row may not be seen. */
export interface RowWatch<Pipeline extends PipelineTypes = PipelineTypes> extends AsyncIterable<Progress<Pipeline>> {
  /** Calls `onChange` with the state and with each change of it, until the returned function is called. */
  subscribe(onChange: (progress: Progress<Pipeline>) => void, onError?: (error: ProgressError) => void): () => void;
}

/**
 * Watches the progress of a row that the signed-in user may select. It costs nothing until somebody subscribes or iterates.
 *
 * @example
 * ```ts
 * for await (const { stages, done } of watchRow(supabase, { pipeline: 'leads', key: id })) {
 *   console.log(stages.scrape?.state);
 *   if (done) break;
 * }
 * ```
 */
export function watchRow<Pipeline extends PipelineTypes = PipelineTypes>(
  supabase: SupabaseClient,
  { pipeline, key, signal }: WatchOptions<Pipeline>,
): RowWatch<Pipeline> {
  const subscribe: RowWatch<Pipeline>['subscribe'] = (onChange, onError = (error) => console.error(error)) =>
    watcherOf(supabase).watch(pipeline, String(key), { onChange: onChange as (progress: Progress) => void, onError });
  return {
    subscribe,
    async *[Symbol.asyncIterator]() {
      let [latest, seen]: (Progress<Pipeline> | undefined)[] = [];
      let failure: ProgressError | undefined;
      let wake = () => {};
      const stop = subscribe(
        (progress) => {
          latest = progress;
          wake();
        },
        (error) => {
          failure = error;
          wake();
        },
      );
      const onAbort = () => wake();
      signal?.addEventListener('abort', onAbort);
      try {
        while (!signal?.aborted) {
          if (failure) throw failure;
          if (latest && latest !== seen) {
            seen = latest;
            yield seen;
          } else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      } finally {
        signal?.removeEventListener('abort', onAbort);
        stop();
      }
    },
  };
}
