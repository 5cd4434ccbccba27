// What the database's functions for operators answer, as far as the page shows it.

export interface Throttle {
  limits: Record<string, unknown>;
  until: string;
  reason: string | null;
  by: string | null;
}

export interface Pause {
  at: string | null;
  by: string | null;
  reason: string | null;
}

/** What is queued and in work at a stage. */
export interface StageHealth {
  pipeline: string;
  stage: string;
  enabled: boolean;
  ready: number;
  in_backoff: number;
  started: number;
  waiting: number;
  completed: number;
  failed: number;
  retries: number;
  oldest_age: number | null;
  live_workers: number;
  sla_seconds: number | null;
  late: number;
  paused: Pause | null;
  throttle: Throttle | null;
  bypass: Record<string, unknown> | null;
}

export interface PipelineHealth {
  pipeline: string;
  enabled: boolean;
  paused: Pause | null;
  open_alerts: string;
}

export interface Overview {
  now: string;
  you: { subject: string | null; role: string; payloads: boolean };
  last_sweep_at: string | null;
  pipelines: PipelineHealth[];
  stages: StageHealth[];
  limits: SharedLimit[];
  bulks: Bulk[];
}

export interface SharedLimit {
  limit: string;
  stages: string[];
  hidden: boolean;
  throttle: Throttle | null;
  [figure: string]: unknown;
}

export interface Bulk {
  bulk: number;
  state: 'previewed' | 'running' | 'done' | 'aborted' | 'stopped';
  do: { verb: string; stage?: string };
  filter: Record<string, unknown> & { pipeline: string };
  by?: string;
  reason?: string;
  why?: string;
  preview: { runs: string; oldest: string | null; newest: string | null; cost_usd: number | null };
  began_at?: string;
  ended_at?: string;
  done: number;
  passed_over: number;
  faults: number;
  held: number;
  faults_by_run?: { run: number; code: string; message: string }[];
}

/** What happened in a step of time, or in all of it. */
export interface Figures {
  at: string;
  completed: number;
  ended: number;
  failed: number;
  retried: number;
  skipped: number;
  cancelled: number;
  run_p50_ms: number | null;
  run_p95_ms: number | null;
  wait_p50_ms: number | null;
  wait_p95_ms: number | null;
  cost_usd: number;
  codes: Record<string, number>;
}

export interface Series {
  from: string;
  to: string;
  points: Figures[];
  /** By stage, all steps together, where they were asked for. */
  stages?: Record<string, Figures>;
}

export interface Fault {
  code?: string;
  message?: string;
  hint?: string;
  detail?: string;
  stack?: string;
}

export interface ListedRun {
  run: number;
  pipeline: string;
  entity: string;
  label?: string;
  status: 'running' | 'completed' | 'failed' | 'cancelled';
  ended_as?: string;
  trace?: string;
  priority: number;
  began_at: string;
  ended_at?: string;
  parent?: number;
  item?: string;
  at?: { stage: string; state: string; attempt: number; retries: number; due_at?: string; error?: Fault }[];
}

export interface Line {
  line: number;
  at: string;
  verb: string;
  pipeline?: string;
  stage?: string;
  runs?: number;
  run_ids?: number[];
  by?: string;
  key?: string;
  filter?: Record<string, unknown>;
  reason?: string;
  bulk?: number;
  outcome?: Record<string, unknown>;
}

export interface Attempt {
  attempt: number;
  stage: string;
  number: number;
  state: string;
  parent?: number;
  retries: number;
  queued_at: string;
  due_at?: string;
  started_at?: string;
  ended_at?: string;
  deadline_at?: string;
  service?: string;
  job?: string;
  usage?: Record<string, unknown>;
  error?: Fault;
  superseded?: boolean;
}

export interface Payload {
  value?: unknown;
  cut?: string;
  bytes?: number;
}

export interface Run extends ListedRun {
  version: number;
  stages: { stage: string; kind: string; state: string; needs: string[] }[];
  children: {
    stage: string;
    pipeline: string;
    state: string;
    spawned: number;
    total: number | null;
    completed: number;
    failed: number;
    cancelled: number;
  }[];
  attempts: Attempt[];
  cost_usd: number | null;
  metadata: Payload | null;
  journal: Line[];
}

export interface Pipeline {
  pipeline: string;
  enabled: boolean;
  paused: Pause | null;
  table: string;
  key: string;
  projection: unknown;
  version: number;
  health: StageHealth[];
  stages: StageDefinition[];
}

export interface StageDefinition {
  stage: string;
  kind: string;
  function?: string;
  needs: string[];
  child?: string;
  limits?: Record<string, unknown>;
  retry?: Record<string, unknown>;
  batch_size?: number;
  max_workers?: number;
  timeout_seconds?: number;
  deadline_seconds?: number;
  sla_seconds?: number;
  enabled: boolean;
}

export interface DeadGroup {
  pipeline: string;
  stage: string;
  error_code: string;
  runs: string;
  oldest: string;
  newest: string;
}

export interface Alert {
  id: number;
  kind: string;
  rule: string | null;
  pipeline: string | null;
  stage: string | null;
  run_id: number | null;
  entity_id: string | null;
  message: string;
  playbook: string | null;
  raised_at: string;
  resolved_at: string | null;
  acknowledged_at: string | null;
  acknowledged_by: string | null;
}
