// Expectations of a row: the pipeline works until the row's run has ended, or nothing is left to do.
import { failureOf, rowError } from './row-state.ts';
import type * as Declared from './test.d.ts';

interface Walked extends Declared.TestPipeline {
  walk(within: string, isOver: () => Promise<boolean>): Promise<void>;
}

export function expectRow(pipeline: Walked, key: string): Declared.RowExpectation {
  const what = `Row ${key} of ${pipeline.name}`;

  /** Works on while the row's run is under way, at most for as long as `within` says. */
  async function ended(within = '1 day'): Promise<Declared.RowState> {
    await pipeline.walk(within, async () => (await pipeline.row(key)).status !== 'running');
    return pipeline.row(key);
  }

  async function toComplete({ within }: { within?: string } = {}): Promise<Declared.RowState> {
    const row = await ended(within);
    if (row.status === 'completed') return row;
    const failure = failureOf(row);
    const how =
      row.status === 'failed' && failure
        ? `failed at stage ${failure.stage}: ${failure.error.code}: ${failure.error.detail ?? failure.error.message}`
        : `has not completed: its run is ${row.status}.`;
    throw rowError(`${what} ${how}`, row, 'completed', toComplete);
  }

  async function toFail({ stage, code, within }: { stage?: string; code?: string; within?: string } = {}) {
    const row = await ended(within);
    const failure = failureOf(row);
    const fits =
      row.status === 'failed' &&
      (stage === undefined || failure?.stage === stage) &&
      (code === undefined || failure?.error.code === code);
    if (fits) return row;
    const expected = `${stage ? ` at stage ${stage}` : ''}${code ? ` with ${code}` : ''}`;
    const found = failure ? `${row.status} at stage ${failure.stage} with ${failure.error.code}` : row.status;
    throw rowError(`${what} was to fail${expected}, and is ${found}.`, row, 'failed', toFail);
  }

  return { toComplete, toFail };
}
