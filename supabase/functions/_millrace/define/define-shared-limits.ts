import { definitionFaults } from './definition-checks.ts';
import { type SharedLimitsInput, sharedLimitsSchema } from './definition-schema.ts';
import { snakeKeys } from './snake-keys.ts';

/** Checked shared limits. */
export interface SharedLimits<Name extends string = string> {
  names: Name[];
  /** By name, each as `millrace.define_limit(text, jsonb)` takes it. */
  toLimits(): Record<string, Record<string, unknown>>;
}

/**
 * Checks limits that stages of any pipelines share; a stage names them in `limits.shared`. They stand in
 * `_pipelines/shared-limits.ts`, from which `npm run pipelines:sync` writes their migration. Throws an error that names the
 * field, what is wrong with it and what was found; the database checks it again when it is defined there.
 *
 * @example
 * ```ts
 * export const sharedLimits = defineSharedLimits({
 *   carrier: { rate: { count: 60, perSeconds: 60 }, adaptive: true },
 *   model: { maxInFlight: 20, spending: { usd: 5, perSeconds: 86_400 } },
 * });
 * ```
 */
export function defineSharedLimits<Input extends SharedLimitsInput>(input: Input): SharedLimits<keyof Input & string> {
  const parsed = sharedLimitsSchema.safeParse(input);
  if (!parsed.success) {
    throw new Error(`Shared limits are not defined correctly. ${definitionFaults(parsed.error, input).join('; ')}`);
  }
  for (const [name, { adaptive, rate, keyRate, maxInFlight, spending }] of Object.entries(parsed.data)) {
    if (!adaptive && !rate && !keyRate && !maxInFlight && !spending) {
      throw new Error(
        `Shared limits are not defined correctly. ${name} limits nothing: set maxInFlight, rate, keyRate or spending.`,
      );
    }
    if (!adaptive || rate || keyRate) continue;
    throw new Error(
      `Shared limits are not defined correctly. ${name}.adaptive is true, but there is no rate, which is what learns: ` +
        'set it, or leave adaptive out.',
    );
  }
  return {
    names: Object.keys(parsed.data),
    toLimits: () => Object.fromEntries(Object.entries(parsed.data).map(([name, limit]) => [name, inSnakeCase(limit)])),
  };
}

const inSnakeCase = (limit: object) => snakeKeys(limit) as Record<string, unknown>;
