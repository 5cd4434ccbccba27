// The types of the functions that the engine serves by the Data API, written by `npm run check -- --write` from the
// migrated database.

export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];

export type EngineFunctions = {
  pipeline_checkpoint: {
    Args: { p_attempt: number; p_token: string; p_turns: Json; p_worker: string };
    Returns: Json;
  };
  pipeline_claim: {
    Args: { p_host: string; p_limit: number; p_pipeline: string; p_seq: number; p_stage: string; p_worker: string };
    Returns: Json;
  };
  pipeline_complete: { Args: { p_items: Json; p_limit: number; p_seq: number; p_worker: string }; Returns: Json };
  pipeline_decide: { Args: { p_attempt: number; p_decision: Json }; Returns: Json };
  pipeline_fold: { Args: { p_fan_outs: number[] }; Returns: Json };
  pipeline_job_owner: { Args: { p_job: Json }; Returns: Json };
  pipeline_leave: { Args: { p_hand_over?: boolean; p_worker: string }; Returns: Json };
  pipeline_note_faults: { Args: { p_faults: Json }; Returns: Json };
  pipeline_note_jobs: { Args: { p_jobs: Json }; Returns: Json };
  pipeline_poll: { Args: { p_limit: number; p_poll_ms?: number }; Returns: Json };
  pipeline_renew: { Args: { p_attempts: number[]; p_worker: string }; Returns: Json };
  pipeline_resume: { Args: { p_items: Json }; Returns: Json };
  pipeline_ring: { Args: { p_stages: Json }; Returns: Json };
  pipeline_spawn: {
    Args: { p_attempt: number; p_items: Json; p_last: boolean; p_token: string; p_worker: string };
    Returns: Json;
  };
  pipeline_sweep: { Args: Record<PropertyKey, never>; Returns: Json };
  pipeline_turns: { Args: { p_attempt: number; p_token: string; p_worker: string }; Returns: Json };
};
