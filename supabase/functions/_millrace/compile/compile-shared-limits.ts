import type { SharedLimits } from '../define/define-shared-limits.ts';
import { sharedLimitsSchema } from '../define/definition-schema.ts';
import { definitionFaults } from './definition-faults.ts';
import { snakeKeys } from './snake-keys.ts';

/**
 * Checks shared limits and gives each by its name as `millrace.define_limit(text, jsonb)` takes it. Throws an error that names
 * the field, what is wrong with it, what was found and the remedy.
 */
export function compileSharedLimits({ limits }: SharedLimits): Record<string, Record<string, unknown>> {
  const parsed = sharedLimitsSchema.safeParse(limits);
  if (!parsed.success) throw refused(definitionFaults(sharedLimitsSchema, parsed.error, limits).join(' '));
  return Object.fromEntries(
    Object.entries(parsed.data).map(([name, limit]) => [name, snakeKeys(limit) as Record<string, unknown>]),
  );
}

const refused = (why: string) => new Error(`Shared limits are not defined correctly. ${why}`);
