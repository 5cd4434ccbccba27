import type { SharedLimitsInput } from './definition-schema.ts';

/** Limits that stages share. */
export interface SharedLimits<Name extends string = string> {
  names: Name[];
  /** The limits as they were given; `npx millrace sync` checks and compiles them. */
  limits: SharedLimitsInput;
}

/**
 * Holds limits that stages of any pipelines share; a stage names them in `limits.shared`. They stand in
 * `_pipelines/shared-limits.ts`, of which `npx millrace sync` writes their migration after it has checked them.
 *
 * @example
 * ```ts
 * export const sharedLimits = defineSharedLimits({
 *   carrier: { rate: { count: 60, perSeconds: 60 }, maxInFlight: 20 },
 *   model: { maxInFlight: 20, spending: { usd: 5, perSeconds: 86_400 } },
 * });
 * ```
 */
export function defineSharedLimits<Input extends SharedLimitsInput>(input: Input): SharedLimits<keyof Input & string> {
  return { names: Object.keys(input), limits: input };
}
