import { z } from 'zod';
import { httpUrl, price } from '../settings.ts';

/** Where the model is and what it costs. */
export const modelSettings = z.object({
  LLM_URL: httpUrl.describe('set the base URL of an OpenAI-compatible API, such as https://api.openai.com/v1'),
  LLM_AUTH_TOKEN: z.string().optional(),
  LLM_MODEL: z.string().describe('set the name of a model that the API at LLM_URL offers'),
  LLM_MODE: z
    .enum(['inline', 'background'], { error: 'must be inline or background' })
    .default('inline')
    .describe('set inline (answered in the call) or background (answered by webhook or polling)'),
  LLM_PRICE_INPUT: price('a million tokens', '0.25')
    .optional()
    .describe('set US dollars for a million input tokens, or remove it'),
  LLM_PRICE_OUTPUT: price('a million tokens', '0.25')
    .optional()
    .describe('set US dollars for a million output tokens, or remove it'),
});

export type ModelSettings = z.output<typeof modelSettings>;
