/**
 * The public entry of the runtime, for pipelines, stages and clients of services. It loads no library but zod and the
 * client of the Data API, since Supabase embeds every package that a function imports. Stages that ask a model also
 * import `model/model.ts` and `model/prompt.ts`; agents import `agents/agent.ts`.
 */

export { definePipeline, type PipelineDefinition } from './define/define-pipeline.ts';
export { defineSharedLimits, type SharedLimits } from './define/define-shared-limits.ts';
export type { FunctionStageInput, PipelineInput, SharedLimitsInput, StageInput } from './define/definition-schema.ts';
export type { Usage } from './engine/engine-contract.ts';
export {
  errorFromStatus,
  excerpt,
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  storableText,
  UnavailableError,
} from './errors.ts';
export { ownCallbackUrl } from './jobs/callback-url.ts';
export { type JobService, jobService, type SubmitContext } from './jobs/job-service.ts';
export { parseJson } from './parse-json.ts';
export { serveStage } from './serve-stage.ts';
export {
  authToken,
  type Env,
  httpUrl,
  price,
  processEnv,
  readSettings,
  type SettingsGroup,
  wholeNumber,
} from './settings.ts';
export { defineMap, mapResult } from './stage/map-stage.ts';
export type { CalledBack, JobState, Service, ServiceContext } from './stage/service.ts';
export {
  defineStage,
  type FinishContext,
  HandedBack,
  type HandlerContext,
  handBack,
  type Stage,
  Waiting,
  waiting,
} from './stage/stage.ts';
export { stepsOf } from './stage/steps.ts';
export { type Traced, traceHeaders } from './trace.ts';
