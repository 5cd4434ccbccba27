import { z } from 'zod';
import { authToken, type Env, httpUrl, price, readSettings, type SettingsGroup } from '../settings.ts';

/** The APIs that models are asked by: OpenAI's Responses, chat completions as most servers offer them, Anthropic's Messages. */
const apis = ['responses', 'chat', 'messages'] as const;
export type ModelApi = (typeof apis)[number];

/** Where a model is, and what it costs: the settings of one name, such as LLM_URL and LLM_MODEL, without that name. */
export interface Provider {
  /** The beginning of the settings' names, such as LLM. */
  prefix: string;
  api: ModelApi;
  url: string;
  token?: string | undefined;
  model: string;
  mode: 'inline' | 'background';
  /** US dollars for a million tokens, where the settings name them. */
  prices: { input?: number | undefined; cached?: number | undefined; output?: number | undefined };
}

/** Returns the settings by which a model is found and priced, under names that begin with `prefix`. */
export function modelSettingsOf<const Prefix extends string>(prefix: Prefix) {
  const shape = {
    URL: httpUrl.describe('set the base URL of an OpenAI-compatible API, such as https://api.openai.com/v1'),
    API: z
      .enum(apis, { error: 'must be responses, chat or messages' })
      .default('responses')
      .describe("set responses (OpenAI's), chat (chat completions) or messages (Anthropic's)"),
    AUTH_TOKEN: authToken.optional(),
    MODEL: z.string().describe(`set the name of a model that the API at ${prefix}_URL offers`),
    MODE: z
      .enum(['inline', 'background'], { error: 'must be inline or background' })
      .default('inline')
      .describe('set inline (answered in the call) or background (answered by webhook or polling)'),
    PRICE_INPUT: price('a million tokens', '0.25')
      .optional()
      .describe('set US dollars for a million input tokens, or remove it'),
    PRICE_CACHED: price('a million tokens', '0.025')
      .optional()
      .describe('set US dollars for a million input tokens read from the cache, or remove it'),
    PRICE_OUTPUT: price('a million tokens', '0.25')
      .optional()
      .describe('set US dollars for a million output tokens, or remove it'),
  };
  type Shape = { [Name in keyof typeof shape as `${Prefix}_${Name & string}`]: (typeof shape)[Name] };
  const named = Object.entries(shape).map(([name, schema]) => [`${prefix}_${name}`, schema]);
  return z.object(Object.fromEntries(named) as Shape);
}

/** Where the model of the settings LLM_… is and what it costs. */
export const modelSettings = modelSettingsOf('LLM');

/**
 * Reads where a model is. Throws a MisconfiguredError that names each faulty setting.
 *
 * @internal
 */
export function readProvider(prefix: string, group: SettingsGroup, env: Env): Provider {
  const settings = readSettings(group, env);
  const given = (name: string) => settings[`${prefix}_${name}`];
  return {
    prefix,
    api: given('API') as ModelApi,
    url: given('URL') as string,
    token: given('AUTH_TOKEN') as string | undefined,
    model: given('MODEL') as string,
    mode: given('MODE') as Provider['mode'],
    prices: {
      input: given('PRICE_INPUT') as number | undefined,
      cached: given('PRICE_CACHED') as number | undefined,
      output: given('PRICE_OUTPUT') as number | undefined,
    },
  };
}
