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

/** The progress of at most 500 rows. The list of keys may be a new array each time. */
export function useRows<Pipeline extends PipelineTypes = PipelineTypes>(
  supabase: SupabaseClient,
  { pipeline, keys }: { pipeline: Pipeline['pipeline']; keys: readonly (string | number)[] },
): RowsState<Pipeline> {
  const wanted = JSON.stringify([pipeline, ...new Set(keys.map(String))]);
  const none = { wanted, rows: {}, errors: {} };
  const [state, setState] = useState<RowsState<Pipeline> & { wanted: string }>(none);
  useEffect(() => {
    const [name = '', ...ids] = JSON.parse(wanted) as string[];
    const change = (part: 'rows' | 'errors', id: string, value: unknown) =>
      setState((old) => {
        const now = old.wanted === wanted ? old : { wanted, rows: {}, errors: {} };
        return { ...now, [part]: { ...now[part], [id]: value } };
      });
    const stops = ids.map((key) => {
      try {
        return watchRow<Pipeline>(supabase, { pipeline: name, key }).subscribe(
          (row) => change('rows', key, row),
          (error) => change('errors', key, error),
        );
      } catch (error) {
        if (!(error instanceof ProgressError)) throw error;
        change('errors', key, error);
        return () => {};
      }
    });
    return () => {
      for (const stop of stops) stop();
    };
  }, [supabase, wanted]);
  return state.wanted === wanted ? state : none;
}
