import process from 'node:process';
import { z } from 'zod';
import { MisconfiguredError } from './errors.ts';

/** Environment variables by name. */
export type Env = Record<string, string | undefined>;

/** The value is a web address; a slash at its end is dropped. */
export const httpUrl = z
  .url({ protocol: /^https?$/, error: 'must be a URL that begins with http:// or https://' })
  .transform((url) => url.replace(/\/+$/, ''));

/**
 * The value is a token that a header carries: visible ASCII characters alone, so without line breaks.
 *
 * @example
 * ```ts
 * const settings = z.object({ CARRIER_AUTH_TOKEN: authToken.optional() });
 * ```
 */
export const authToken = z
  .string()
  .regex(/^[\x20-\x7e]+$/, 'holds a line break or another character that no header carries');

/**
 * The value is a whole number from `min` to `max`, written in digits; it is read as a number.
 *
 * @example
 * ```ts
 * const settings = z.object({ CARRIER_PARCELS: wholeNumber(1, 100).describe('set how many parcels go by one order') });
 * ```
 */
export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`);

/**
 * Returns a schema for a setting that is a price in US dollars, read as a number.
 *
 * `unit`: the unit that the price is for, such as "a million tokens".
 * `example`: a valid price, for the message about any other value.
 *
 * @example
 * ```ts
 * const settings = z.object({ CARRIER_PRICE: price('a parcel', '4.20').describe('set US dollars for a parcel') });
 * ```
 */
export const price = (unit: string, example: string) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, `must be a number of US dollars for ${unit}, such as ${example}`)
    .transform(Number);

/**
 * Settings that one part of the functions needs: environment variables by name, each with a schema that reads its text. The
 * description of a schema says how to mend a value that is missing or wrong, and comes last.
 *
 * @example
 * ```ts
 * const mailerSettings: SettingsGroup = z.object({
 *   MAILER_SENDER: z.email('must be an e-mail address').describe('set the address that mails are sent from'),
 * });
 * ```
 */
export type SettingsGroup = z.ZodObject;

/** Settings of every worker. */
export const workerSettings = z.object({
  QUEUE_BATCH_SIZE: wholeNumber(1, 500)
    .optional()
    .describe('set how many entities a worker handles side by side, or remove it to use each stage’s own'),
  COMPLETION_POLL_INTERVAL: wholeNumber(1000, 3_600_000)
    .optional()
    .describe('set the milliseconds between two polls of a job, or remove it to use each stage’s own'),
  WORKER_SECONDS: wholeNumber(5, 190)
    .default(60)
    .describe('set the seconds one invocation may work, less than half of the platform’s wall clock'),
  JOB_CALLBACK_URL: httpUrl
    .optional()
    .describe('set the URL of millrace/callback as the services see it, or remove it'),
});

/** The secrets that verify callbacks. */
export const webhookSettings = z.object({
  WEBHOOK_SECRET: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter(Boolean))
    .refine((secrets) => secrets.every(isWebhookSecret), 'holds a secret that is not whsec_ and base64 of 24 bytes')
    .describe('set whsec_ followed by the output of: openssl rand -base64 32'),
});

/**
 * The environment of this process. Outside of handlers, which have it as `context.env`.
 *
 * @example
 * ```ts
 * const { CARRIER_URL } = readSettings(z.object({ CARRIER_URL: httpUrl }), processEnv());
 * ```
 */
export function processEnv(): Env {
  return process.env;
}

/**
 * Reads one group of settings; an empty value counts as unset, as it does in a .env file. Throws a MisconfiguredError that
 * names each faulty variable, what is wrong with it and the remedy; a value is never shown, since it may be a secret.
 *
 * @example
 * ```ts
 * const carrierSettings = z.object({ CARRIER_URL: httpUrl.describe('set the base URL of the carrier') });
 *
 * const { CARRIER_URL } = readSettings(carrierSettings, context.env);
 * ```
 */
export function readSettings<G extends SettingsGroup>(group: G, env: Env): z.output<G> {
  const names = Object.keys(group.shape);
  const given = Object.fromEntries(names.map((name) => [name, env[name]?.trim() || undefined]));
  const parsed = group.safeParse(given);
  if (parsed.success) return parsed.data;
  const faults = new Map<string, string>();
  for (const issue of parsed.error.issues) {
    const name = String(issue.path[0]);
    const what = given[name] === undefined ? 'is not set' : issue.message;
    const remedy = (group.shape[name] as z.ZodType).description ?? 'correct it';
    if (!faults.has(name)) faults.set(name, `${name} ${what}: ${remedy}`);
  }
  const where = 'On Supabase use "supabase secrets set NAME=value", locally supabase/functions/.env.';
  throw new MisconfiguredError(`${[...faults.values()].join('; ')}. ${where}`);
}

/** Returns the faults in these groups of settings, one sentence a group; none when all is well. */
export function settingsFaults(groups: readonly SettingsGroup[], env: Env): string[] {
  return groups.flatMap((group) => {
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
