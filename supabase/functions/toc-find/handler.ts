import { z } from 'zod';
import { defineAgent } from '../_millrace/agents/agent.ts';
import { toc } from '../_pipelines/toc.ts';
import { findResult } from '../_pipelines/toc-results.ts';
import { rangeContradiction } from './check-range.ts';
import { prompt } from './prompt.ts';
import { bookTools } from './tools.ts';

const input = z.object({ entity: z.object({ id: z.string() }) });

/** The agent's first message. Its last lines are arguments to begin with. */
export function ask(): string {
  return [
    'Look at the pages of this book, and search its text if need be: on which pages stands its table of contents?',
    'Begin with these arguments.',
    'first page: 1',
    'last page: 12',
    'query: contents',
  ].join('\n\n');
}

export const find = defineAgent({
  pipeline: toc,
  stage: 'find',
  input,
  output: findResult,
  prompt,
  ask,
  tools: ({ entity }) => bookTools(entity.id),
  check: rangeContradiction,
});
