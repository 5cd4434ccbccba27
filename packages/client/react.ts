// Hooks for React: the latest progress of a row, or of many.
import type { SupabaseClient } from '@supabase/supabase-js';
import { useEffect, useState } from 'react';
import { type PipelineTypes, type Progress, ProgressError, watchRow } from './index.ts';

export interface RowState<Pipeline extends PipelineTypes = PipelineTypes> {
  /** Undefined until the first answer. */
  row: Progress<Pipeline> | undefined;
  error: ProgressError | undefined;
}

export interface RowsState<Pipeline extends PipelineTypes = PipelineTypes> {
  /** By their keys; a row is missing until the first answer. */
  rows: Record<string, Progress<Pipeline>>;
  errors: Record<string, ProgressError>;
}

/**
 * The progress of a row while the component is there. A key of null or undefined watches nothing.
 *
 * @example
 * ```tsx
 * const { row, error } = useRow(supabase, { pipeline: 'leads', key: id });
 * ```
 */
export function useRow<Pipeline extends PipelineTypes = PipelineTypes>(
  supabase: SupabaseClient,
  { pipeline, key }: { pipeline: Pipeline['pipeline']; key: string | number | null | undefined },
): RowState<Pipeline> {
  const id = String(key);
  const { rows, errors } = useRows<Pipeline>(supabase, { pipeline, keys: key == null ? [] : [id] });
  return { row: rows[id], error: errors[id] };
}

/** The rows and errors that a hook has, and their client and pipeline. */
interface Known extends RowsState {
  supabase: SupabaseClient;
  pipeline: string;
}

/**
 * The progress of at most 500 rows. The list of keys may be a new array each time: a key that stays keeps its row.
 *
 * @example
 * ```tsx
 * const { rows, errors } = useRows(supabase, { pipeline: 'leads', keys: ids });
 * ```
 */
export function useRows<Pipeline extends PipelineTypes = PipelineTypes>(
  supabase: SupabaseClient,
  { pipeline, keys }: { pipeline: Pipeline['pipeline']; keys: readonly (string | number)[] },
): RowsState<Pipeline> {
  const ids = new Set(keys.map(String));
  const wanted = JSON.stringify([...ids]);
  const [known, setKnown] = useState<Known>({ supabase, pipeline, rows: {}, errors: {} });
  const ofIds = (known: Known) => only(known, { supabase, pipeline, ids });
  useEffect(() => {
    setKnown(ofIds);
    const stops = [...ids].map((key) => {
      const onError = (error: ProgressError) =>
        setKnown((known) => ({ ...known, errors: { ...known.errors, [key]: error } }));
      try {
        return watchRow(supabase, { pipeline, key }).subscribe((row) => {
          setKnown((known) => {
            const { [key]: error, ...errors } = known.errors;
            return known.rows[key] === row && !error
              ? known
              : { ...known, rows: { ...known.rows, [key]: row }, errors };
          });
        }, onError);
      } catch (error) {
        if (!(error instanceof ProgressError)) throw error;
        onError(error);
        return () => {};
      }
    });
    return () => {
      for (const stop of stops) stop();
    };
  }, [supabase, pipeline, wanted]);
  return ofIds(known) as RowsState<Pipeline>;
}

/** Drops the rows and errors of other keys. Returns the same object where there are none. */
function only(known: Known, { supabase, pipeline, ids }: Pick<Known, 'supabase' | 'pipeline'> & { ids: Set<string> }) {
  const isSame = known.supabase === supabase && known.pipeline === pipeline;
  if (isSame && [known.rows, known.errors].every((of) => Object.keys(of).every((key) => ids.has(key)))) return known;
  const pick = <Value>(of: Record<string, Value>): Record<string, Value> =>
    Object.fromEntries(Object.entries(of).filter(([key]) => isSame && ids.has(key)));
  return { supabase, pipeline, rows: pick(known.rows), errors: pick(known.errors) };
}
