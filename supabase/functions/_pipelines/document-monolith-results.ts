import { z } from 'zod';
import { kgResult } from './chunks-results.ts';
import { chunkingResult, extractionResult } from './documents-results.ts';

/** What the one stage of `document_monolith` stores: all that the three phases of `documents` and their chunks do. */
export const monolithResult = extractionResult.extend({
  ...chunkingResult.shape,
  facts: z.array(kgResult.extend({ chunk_id: z.string() })),
});
export type MonolithResult = z.output<typeof monolithResult>;
