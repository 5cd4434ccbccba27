// A row's progress, typed by a pipeline that `npx millrace sync --types` describes.

/** A pipeline's stages with the codes of their errors; `npx millrace sync --types` writes one for each pipeline. */
export interface PipelineTypes {
  pipeline: string;
  stages: Record<string, { result: unknown; error: string }>;
}

/** `pruned`: the run is over and so old that its stages were deleted. */
export type StageState =
  | 'pending'
  | 'queued'
  | 'started'
  | 'waiting'
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'skipped'
  | 'pruned';

/** Times are ISO 8601. */
export interface StageProgress<Code extends string = string> {
  state: StageState;
  /** How often the stage was tried, the present try included; 0 while it is pending. */
  tries: number;
  /** When a try is due that waits for its time. */
  due_at?: string;
  started_at?: string;
  ended_at?: string;
  /** Why the stage failed, or its last try. `detail` comes to the roles alone that the definition's `progress.detailsTo` names. */
  error?: { code: Code | (string & {}); message: string; detail?: string };
  children?: { total: number; completed: number; failed: number; cancelled: number };
}

export interface RunProgress {
  status: 'running' | 'completed' | 'failed' | 'cancelled';
  /** The name under which a stage's result ended the run. */
  ended_as?: string;
  began_at: string;
  ended_at?: string;
}

export interface Progress<Pipeline extends PipelineTypes = PipelineTypes> {
  /** The newest run; null before the first. */
  run: RunProgress | null;
  stages: { [Name in keyof Pipeline['stages']]: StageProgress<Pipeline['stages'][Name]['error']> };
  /** Whether the run is over, or the row was deleted. */
  done: boolean;
  deleted: boolean;
  /** By the medians of the last day; null where they do not tell. */
  expectedEnd: string | null;
}

/** A refusal. The client asks again once a user signs in. */
export class ProgressError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = 'ProgressError';
  }
}
