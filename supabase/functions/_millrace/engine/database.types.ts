// The types of the functions that the engine serves by the Data API, written by `npm run check -- --write` from the
// migrated database.

export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];

export type EngineFunctions = {
  millrace_act: { Args: { p_request: Json }; Returns: Json };
  millrace_alerts: { Args: { p_query?: Json }; Returns: Json };
  millrace_attempt: { Args: { p_query: Json }; Returns: Json };
  millrace_attend: { Args: { p_release?: string; p_stages: Json; p_url?: string }; Returns: Json };
  millrace_checkpoint: {
    Args: { p_attempt: number; p_token: string; p_turns: Json; p_worker: string };
    Returns: Json;
  };
  millrace_claim: {
    Args: { p_host: string; p_limit: number; p_pipeline: string; p_seq: number; p_stage: string; p_worker: string };
    Returns: Json;
  };
  millrace_collect_children: { Args: { p_fan_outs: number[] }; Returns: Json };
  millrace_complete: {
    Args: { p_goodbye?: boolean; p_items: Json; p_limit: number; p_seq: number; p_worker: string };
    Returns: Json;
  };
  millrace_connect: { Args: { p_once?: boolean; p_project_url: string; p_wake_secret: string }; Returns: Json };
  millrace_costs: { Args: { p_query?: Json }; Returns: Json };
  millrace_dead_letters: { Args: { p_query?: Json }; Returns: Json };
  millrace_decide: { Args: { p_attempt: number; p_decision: Json }; Returns: Json };
  millrace_health: { Args: Record<PropertyKey, never>; Returns: Json };
  millrace_job_owner: { Args: { p_job: Json }; Returns: Json };
  millrace_journal: { Args: { p_query?: Json }; Returns: Json };
  millrace_keep_page: { Args: { p_page_url: string }; Returns: Json };
  millrace_leave: {
    Args: { p_hand_over?: boolean; p_row_bytes?: number; p_row_cpu_ms?: number; p_worker: string };
    Returns: Json;
  };
  millrace_limits: { Args: { p_query?: Json }; Returns: Json };
  millrace_metrics: { Args: Record<PropertyKey, never>; Returns: Json };
  millrace_note_deliveries: { Args: { p_deliveries: Json }; Returns: Json };
  millrace_note_faults: { Args: { p_faults: Json }; Returns: Json };
  millrace_note_jobs: { Args: { p_jobs: Json }; Returns: Json };
  millrace_overview: { Args: { p_query?: Json }; Returns: Json };
  millrace_pipeline: { Args: { p_query: Json }; Returns: Json };
  millrace_poll: { Args: { p_limit: number; p_poll_ms?: number }; Returns: Json };
  millrace_progress: { Args: { p_client?: string; p_rows: Json }; Returns: Json };
  millrace_renew: { Args: { p_attempts: number[]; p_worker: string }; Returns: Json };
  millrace_resume: { Args: { p_items: Json }; Returns: Json };
  millrace_run: { Args: { p_query: Json }; Returns: Json };
  millrace_runs: { Args: { p_query?: Json }; Returns: Json };
  millrace_search: { Args: { p_query: Json }; Returns: Json };
  millrace_series: { Args: { p_query: Json }; Returns: Json };
  millrace_settings: { Args: { p_query?: Json }; Returns: Json };
  millrace_spawn: {
    Args: { p_attempt: number; p_items: Json; p_last: boolean; p_token: string; p_worker: string };
    Returns: Json;
  };
  millrace_status: { Args: { p_query: Json }; Returns: Json };
  millrace_sweep: { Args: Record<PropertyKey, never>; Returns: Json };
  millrace_take_messages: { Args: Record<PropertyKey, never>; Returns: Json };
  millrace_tell_form: { Args: { p_form: Json; p_pipeline: string; p_stage: string }; Returns: Json };
  millrace_touched: { Args: { p_query: Json }; Returns: Json };
  millrace_turns: { Args: { p_attempt: number; p_token: string; p_worker: string }; Returns: Json };
  millrace_wake: { Args: { p_stages: Json }; Returns: Json };
  millrace_wake_answer: { Args: { p_request: number }; Returns: Json };
};
