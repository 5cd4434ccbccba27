import type { Provider } from '../model/model-settings.ts';
import type { BatchRow, LineAnswer, LineFault } from './batch-rows.ts';

/** A line of a batch's file: the number of its row, and the body of its question. */
export interface FileLine {
  id: number;
  request: string;
}

/** The state of a batch at its provider. */
export interface BatchState {
  state: 'running' | 'cancelling' | 'completed' | 'expired' | 'cancelled' | 'rejected';
  /** Where its results are. */
  files: string[];
  /** Whether the batch has ended with results, and does not yet say where they are. */
  lacksFiles?: boolean;
  /** How many questions have a result, as the provider counts them. */
  results: number;
  /** Of a rejected batch: the faults of its file, with the number of the line where one is to blame. */
  faults: { line: number | null; fault: LineFault }[];
}

/** A result of a batch: the number of its row, and the answer. No answer: the batch ended before the question's turn. */
export interface BatchResult {
  line: number;
  /** How many characters the result's text has. */
  size: number;
  answer: LineAnswer | null;
}

export interface BatchCall {
  provider: Provider;
  batch: BatchRow;
  signal: AbortSignal;
}

/** Knowledge about a batch that an earlier call may have begun. */
export interface Sought {
  /** The file that the call named, where the API has files. */
  file: string | null;
  /** Returns which of these ids belong to other batches of the project. */
  areKnown(ids: string[]): Promise<string[]>;
}

/** A provider's batches, by the API that its settings name. Each call throws a StageError. */
export interface BatchApi {
  /** Uploads the file, where the API has files. Returns its id. */
  upload(lines: FileLine[], call: BatchCall): Promise<string | null>;
  /** Begins the batch, and returns its id at the provider. */
  begin(file: string | null, lines: FileLine[], call: BatchCall): Promise<string>;
  /** Looks for the batch that an earlier call has begun. `unsure`: a batch that may be it, which its results will tell. */
  find(call: BatchCall, sought: Sought): Promise<{ id: string; unsure: boolean } | null>;
  /** Returns the other batches of the same questions that are under way: one call may have begun two. */
  twinsOf(id: string, call: BatchCall): Promise<string[]>;
  /** Whether results are those of this batch. Throws where they cannot be read. */
  owns(file: string, call: BatchCall): Promise<boolean>;
  /** The state of a batch; null for one that the provider does not know. */
  stateOf(id: string, call: Omit<BatchCall, 'batch'>): Promise<BatchState | null>;
  cancel(id: string, call: Omit<BatchCall, 'batch'>): Promise<void>;
  /** Reads the results in a file of the batch behind line `from`, as far as they can be read. */
  results(file: string, call: BatchCall, from?: number): AsyncGenerator<BatchResult | 'unknown'>;
}

/** Returns the number of the row that a custom_id names; null for one that is not of this batch. */
export function lineOf(customId: unknown, { key }: BatchRow): number | null {
  if (typeof customId !== 'string' || !customId.startsWith(`${key}-`)) return null;
  const line = customId.slice(key.length + 1);
  return /^[1-9]\d{0,14}$/.test(line) ? Number(line) : null;
}

export const customIdOf = (id: number, { key }: BatchRow): string => `${key}-${id}`;
