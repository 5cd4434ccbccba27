export interface DemoSettings {
  env: Record<string, string>;
  /** Which model writes, in sentences for the user. */
  modelNote: string[];
  /** What the demo does otherwise than the user's settings say, in sentences for the user. */
  warnings: string[];
  /** Milliseconds the leads may take. */
  limitMs: number;
}

const localModelNote = [
  'The model is a local stand-in that copies sentences from the pages:',
  'what it writes shows the plumbing, not a model’s quality.',
  'For a real one set LLM_URL, LLM_AUTH_TOKEN and LLM_MODEL, here or in .env.',
];

/**
 * The settings of the demo from the user's own: it always reads with the local scraper, which alone reaches the sample
 * sites, and writes with the local model unless LLM_URL and LLM_MODEL both name another.
 */
export function demoSettings(given: Record<string, string>): DemoSettings {
  const { LLM_URL: url, LLM_MODEL: model } = given;
  const replaced =
    url && model ? /^(SCRAPER_URL|SCRAPER_AUTH_TOKEN|JOB_CALLBACK_URL)$/ : /^(SCRAPER_(?!ALLOW)|JOB_|LLM_)/;
  const env = Object.fromEntries(Object.entries(given).filter(([name]) => !replaced.test(name)));
  const warnings = settingsPassedOver(given);
  // A real model takes its time.
  if (url && model) return { env, modelNote: [`The model ${model} at ${url} writes.`], warnings, limitMs: 600_000 };
  return {
    env: { ...env, LLM_PRICE_INPUT: '0', LLM_PRICE_OUTPUT: '0' },
    modelNote: localModelNote,
    warnings,
    limitMs: 120_000,
  };
}

function settingsPassedOver({
  LLM_URL: url,
  LLM_MODEL: model,
  SCRAPER_URL: scraper,
}: Record<string, string>): string[] {
  const warnings: string[] = [];
  if (Boolean(url) !== Boolean(model)) {
    const [set, missing] = url ? ['LLM_URL', 'LLM_MODEL'] : ['LLM_MODEL', 'LLM_URL'];
    warnings.push(`${set} is set but ${missing} is not, so the local model writes: set both to use a real one.`);
  }
  if (scraper) warnings.push('SCRAPER_URL is ignored: the demo reads with the local scraper. `npm run stack` uses it.');
  return warnings;
}
