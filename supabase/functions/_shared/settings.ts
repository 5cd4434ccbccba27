import process from 'node:process';
import { z } from 'zod';
import { MisconfiguredError } from './errors.ts';

/** Environment variables by name. */
export type Env = Record<string, string | undefined>;

const httpUrl = z
  .url({ protocol: /^https?$/, error: 'must be a URL that begins with http:// or https://' })
  .transform((url) => url.replace(/\/+$/, ''));
const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`);
const price = (unit: string, example: string) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, `must be a number of US dollars for ${unit}, such as ${example}`)
    .transform(Number)
    .optional();

const groups = {
  worker: z.object({
    QUEUE_BATCH_SIZE: wholeNumber(1, 500).optional(),
    COMPLETION_POLL_INTERVAL: wholeNumber(1000, 3_600_000).optional(),
    WORKER_SECONDS: wholeNumber(5, 190).default(60),
  }),
  scraper: z.object({
    SCRAPER_URL: httpUrl,
    SCRAPER_AUTH_TOKEN: z.string().optional(),
    JOB_CALLBACK_URL: httpUrl.optional(),
  }),
  ocr: z.object({
    OCR_URL: httpUrl,
    OCR_AUTH_TOKEN: z.string().optional(),
  }),
  transcription: z.object({
    DEEPGRAM_URL: httpUrl.default('https://api.deepgram.com'),
    DEEPGRAM_API_KEY: z.string(),
    DEEPGRAM_MODEL: z.string().default('nova-3'),
    DEEPGRAM_PRICE_MINUTE: price('a minute of sound', '0.0043'),
  }),
  graphiti: z.object({
    GRAPHITI_URL: httpUrl.optional(),
    GRAPHITI_AUTH_TOKEN: z.string().optional(),
  }),
  model: z.object({
    LLM_URL: httpUrl,
    LLM_AUTH_TOKEN: z.string().optional(),
    LLM_MODEL: z.string(),
    LLM_MODE: z.enum(['inline', 'background'], { error: 'must be inline or background' }).default('inline'),
    LLM_PRICE_INPUT: price('a million tokens', '0.25'),
    LLM_PRICE_OUTPUT: price('a million tokens', '0.25'),
  }),
  webhook: z.object({
    WEBHOOK_SECRET: z
      .string()
      .transform((text) => text.split(/[\s,]+/).filter(Boolean))
      .refine((secrets) => secrets.every(isWebhookSecret), 'holds a secret that is not whsec_ and base64 of 24 bytes'),
  }),
};

/** The settings of each group, as one part of the functions reads them. */
export type Settings = { [G in keyof typeof groups]: z.output<(typeof groups)[G]> };
export type SettingsGroup = keyof Settings;

const remedies: Record<string, string> = {
  QUEUE_BATCH_SIZE: 'set how many entities a worker handles side by side, or remove it to use each stage’s own',
  COMPLETION_POLL_INTERVAL: 'set the milliseconds between two polls of a job, or remove it to use each stage’s own',
  WORKER_SECONDS: 'set the seconds one invocation may work, less than half of the platform’s wall clock',
  SCRAPER_URL: 'set the base URL of the scraper, such as https://scraper.example.com',
  OCR_URL: 'set the base URL of the OCR service, such as https://ocr.example.com',
  JOB_CALLBACK_URL: 'set the URL of the function job-complete as the scraper sees it, or remove it',
  DEEPGRAM_URL: 'set the base URL of an API that answers as Deepgram’s does, or remove it to use Deepgram’s own',
  DEEPGRAM_API_KEY: 'set a key of the transcription service, from https://console.deepgram.com',
  DEEPGRAM_PRICE_MINUTE: 'set US dollars for a minute of sound, or remove it',
  GRAPHITI_URL: 'set the base URL of a Graphiti server, such as https://graphiti.example.com, or remove it',
  LLM_URL: 'set the base URL of an OpenAI-compatible API, such as https://api.openai.com/v1',
  LLM_MODEL: 'set the name of a model that the API at LLM_URL offers',
  LLM_MODE: 'set inline (answered in the call) or background (answered by webhook or polling)',
  LLM_PRICE_INPUT: 'set US dollars for a million input tokens, or remove it',
  LLM_PRICE_OUTPUT: 'set US dollars for a million output tokens, or remove it',
  WEBHOOK_SECRET: 'set whsec_ followed by the output of: openssl rand -base64 32',
};

/** The environment of this process. An empty value counts as unset, as it does in a .env file. */
export function processEnv(): Env {
  return process.env;
}

/**
 * Reads one group of settings. Throws a MisconfiguredError that names each faulty variable, what is wrong with it
 * and the remedy; a value is never shown, since it may be a secret.
 */
export function readSettings<G extends SettingsGroup>(group: G, env: Env): Settings[G] {
  const schema = groups[group];
  const names = Object.keys(schema.shape);
  const given = Object.fromEntries(names.map((name) => [name, env[name]?.trim() || undefined]));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data as Settings[G];
  const faults = new Map<string, string>();
  for (const issue of parsed.error.issues) {
    const name = String(issue.path[0]);
    const what = given[name] === undefined ? 'is not set' : issue.message;
    if (!faults.has(name)) faults.set(name, `${name} ${what}: ${remedies[name] ?? 'correct it'}`);
  }
  const where = 'On Supabase use "supabase secrets set NAME=value", elsewhere the file .env.';
  throw new MisconfiguredError(`${[...faults.values()].join('; ')}. ${where}`);
}

/** The faults in the given groups of settings, one sentence each; none when all is well. */
export function settingsFaults(wanted: readonly SettingsGroup[], env: Env): string[] {
  return wanted.flatMap((group) => {
    try {
      readSettings(group, env);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
}

function isWebhookSecret(secret: string): boolean {
  const base64 = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret;
  return /^[A-Za-z0-9+/]+={0,2}$/.test(base64) && Math.floor((base64.replace(/=+$/, '').length * 3) / 4) >= 24;
}
