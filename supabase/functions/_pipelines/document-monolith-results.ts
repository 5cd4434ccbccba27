import { z } from 'zod';
import { kgResult } from './chunks-results.ts';
import { chunkingResult, extractionResult } from './documents-results.ts';

/**
 * The result of the single stage of `document_monolith`: the results of the three phases of `documents` and of their
 * chunks.
 */
export const monolithResult = extractionResult.extend({
  ...chunkingResult.shape,
  facts: z.array(kgResult.extend({ chunk_id: z.string() })),
});
export type MonolithResult = z.output<typeof monolithResult>;
