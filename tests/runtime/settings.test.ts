import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { alertSettings } from '../../supabase/functions/_millrace/alerts/send-alerts.ts';
import { readPlatform } from '../../supabase/functions/_millrace/engine/platform.ts';
import { MisconfiguredError } from '../../supabase/functions/_millrace/errors.ts';
import { metricsSettings } from '../../supabase/functions/_millrace/metrics/serve-metrics.ts';
import { modelSettings } from '../../supabase/functions/_millrace/model/model-settings.ts';
import {
  type Env,
  readSettings,
  type SettingsGroup,
  webhookSettings,
  workerSettings,
} from '../../supabase/functions/_millrace/settings.ts';
import { traceSettings } from '../../supabase/functions/_millrace/traces/send-traces.ts';
import { scraper } from '../../supabase/functions/_services/scraper.ts';
import { transcriptionSettings } from '../../supabase/functions/_services/transcription.ts';
import { readStages } from '../../tools/check/stage-code.ts';

const groups = {
  scraper: scraper.settings,
  model: modelSettings,
  transcription: transcriptionSettings,
  worker: workerSettings,
  webhook: webhookSettings,
};
type Name = keyof typeof groups;

function faultOf(name: Name, env: Env): string {
  try {
    readSettings(groups[name] as SettingsGroup, env);
  } catch (error) {
    expect(error).toBeInstanceOf(MisconfiguredError);
    return (error as Error).message;
  }
  throw new Error('no fault was found');
}

describe('a faulty setting is named with what is wrong and the remedy', () => {
  test.each<[Name, Env, RegExp]>([
    ['scraper', {}, /SCRAPER_URL is not set: set the base URL/],
    ['scraper', { SCRAPER_URL: '' }, /SCRAPER_URL is not set/],
    ['scraper', { SCRAPER_URL: 'scraper:3000' }, /SCRAPER_URL must be a URL that begins with http/],
    ['model', { LLM_MODEL: 'm' }, /LLM_URL is not set/],
    ['model', { LLM_URL: 'http://m' }, /LLM_MODEL is not set/],
    ['model', { LLM_URL: 'http://m', LLM_MODEL: 'm', LLM_MODE: 'fast' }, /LLM_MODE must be inline or background/],
    ['model', { LLM_URL: 'http://m', LLM_MODEL: 'm', LLM_PRICE_INPUT: '-1' }, /LLM_PRICE_INPUT must be a number/],
    ['model', { LLM_URL: 'http://m', LLM_MODEL: 'm', LLM_AUTH_TOKEN: 'a\nb' }, /LLM_AUTH_TOKEN holds a line break/],
    ['model', { LLM_URL: 'http://m', LLM_MODEL: 'm', LLM_AUTH_TOKEN: '“k”' }, /no header carries: correct it/],
    ['scraper', { SCRAPER_URL: 'http://s', SCRAPER_AUTH_TOKEN: 'a\0' }, /SCRAPER_AUTH_TOKEN holds a line break/],
    ['transcription', {}, /DEEPGRAM_API_KEY is not set: set a key/],
    ['transcription', { DEEPGRAM_API_KEY: 'k', DEEPGRAM_URL: 'deepgram' }, /DEEPGRAM_URL must be a URL/],
    [
      'transcription',
      { DEEPGRAM_API_KEY: 'k', DEEPGRAM_PRICE_MINUTE: 'x' },
      /DEEPGRAM_PRICE_MINUTE .* a minute of sound/,
    ],
    ['worker', { QUEUE_BATCH_SIZE: '0' }, /QUEUE_BATCH_SIZE must be a whole number from 1 to 500/],
    ['worker', { QUEUE_BATCH_SIZE: 'many' }, /QUEUE_BATCH_SIZE must be a whole number/],
    ['worker', { COMPLETION_POLL_INTERVAL: '5' }, /COMPLETION_POLL_INTERVAL must be a whole number from 1000/],
    ['worker', { WORKER_SECONDS: '1000' }, /WORKER_SECONDS must be a whole number from 5 to 190/],
    ['webhook', {}, /WEBHOOK_SECRET is not set.*openssl rand/],
    ['webhook', { WEBHOOK_SECRET: 'whsec_short' }, /WEBHOOK_SECRET holds a secret that is not/],
  ])('%s %j', (group, env, expected) => {
    expect(faultOf(group, env)).toMatch(expected);
  });

  test('all faults of a group are named at once', () => {
    expect(faultOf('model', { LLM_MODE: 'fast' })).toMatch(/LLM_URL .*LLM_MODEL .*LLM_MODE /);
  });

  test('a value is never shown, since it may be a secret', () => {
    expect(faultOf('webhook', { WEBHOOK_SECRET: 'my-precious' })).not.toContain('my-precious');
  });
});

test('settings have the defaults that .env.example names', () => {
  const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
  expect(readSettings(workerSettings, {})).toEqual({ WORKER_SECONDS: 60 });
  expect(readSettings(modelSettings, { LLM_URL: 'http://m/v1/', LLM_MODEL: 'm' })).toEqual({
    LLM_URL: 'http://m/v1',
    LLM_API: 'responses',
    LLM_MODEL: 'm',
    LLM_MODE: 'inline',
  });
  expect(readSettings(transcriptionSettings, { DEEPGRAM_API_KEY: 'k' })).toEqual({
    DEEPGRAM_URL: 'https://api.deepgram.com',
    DEEPGRAM_API_KEY: 'k',
    DEEPGRAM_MODEL: 'nova-3',
  });
  expect(example).toContain('# DEEPGRAM_URL=https://api.deepgram.com');
  expect(example).toContain('# DEEPGRAM_MODEL=nova-3');
  expect(example).toContain('# WORKER_SECONDS=60');
  expect(example).toContain('# LLM_MODE=inline');
  expect(example).toContain('# LLM_API=responses');
});

test('.env.example lists every setting of every stage and service', async () => {
  const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
  const stages = await readStages();
  const used = stages.flatMap((stage) => [
    ...stage.settings,
    ...stage.services.flatMap(({ settings }) => settings ?? []),
  ]);
  const names = new Set(
    [workerSettings, webhookSettings, alertSettings, metricsSettings, traceSettings, ...used].flatMap((group) =>
      Object.keys(group.shape),
    ),
  );
  expect(names.size).toBeGreaterThan(15);
  for (const name of names) expect(example).toMatch(new RegExp(`^#? ?${name}=`, 'm'));
});

test('several webhook secrets may be set, by commas or spaces', () => {
  const one = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
  const two = `whsec_${Buffer.alloc(32, 2).toString('base64')}`;
  expect(readSettings(webhookSettings, { WEBHOOK_SECRET: `${one}, ${two}` }).WEBHOOK_SECRET).toEqual([one, two]);
});

describe('the platform’s keys', () => {
  test('the default secret key is used, and every secret key is accepted', () => {
    const keys = JSON.stringify({ cron: 'sb_secret_b', default: 'sb_secret_a' });
    const platform = readPlatform({ SUPABASE_URL: 'http://api/', SUPABASE_SECRET_KEYS: keys });
    expect(platform).toEqual({
      url: 'http://api',
      secretKey: 'sb_secret_a',
      secretKeys: { cron: 'sb_secret_b', default: 'sb_secret_a' },
      wakeSecret: undefined,
    });
  });

  test('the wake-up secret is read beside them, and an empty one is none', () => {
    const wakeSecretOf = (value: string) =>
      readPlatform({ SUPABASE_URL: 'http://api', SUPABASE_SECRET_KEY: 'k', MILLRACE_WAKE_SECRET: value }).wakeSecret;
    expect(wakeSecretOf(' wake ')).toBe('wake');
    expect(wakeSecretOf(' ')).toBeUndefined();
  });

  test('only the legacy service-role key will do', () => {
    const platform = readPlatform({ SUPABASE_URL: 'http://api', SUPABASE_SERVICE_ROLE_KEY: 'ey.legacy' });
    expect(platform.secretKey).toBe('ey.legacy');
  });

  test.each([
    [{}, /SUPABASE_URL is not set/],
    [{ SUPABASE_URL: 'http://api' }, /SUPABASE_SECRET_KEYS nor SUPABASE_SERVICE_ROLE_KEY is set/],
    [{ SUPABASE_URL: 'http://api', SUPABASE_SECRET_KEYS: 'sb_secret_x' }, /SUPABASE_SECRET_KEYS is no JSON object/],
  ])('what is missing is named: %j', (env, expected) => {
    expect(() => readPlatform(env)).toThrow(expected);
  });
});
