export interface DemoSettings {
  env: Record<string, string>;
  /** Which model writes, in sentences for the user. */
  modelNote: string[];
  /** What the demo does otherwise than the user's settings say, in sentences for the user. */
  warnings: string[];
  /** Milliseconds all leads may take, or a book without making any progress. */
  limitMs: number;
}

const realModelNote = 'For a real one set LLM_URL, LLM_AUTH_TOKEN and LLM_MODEL, here or in .env.';
const localModelNotes = {
  leads: [
    'The model is a local stand-in that copies sentences from the pages:',
    'what it writes shows the plumbing, not a model’s quality.',
    realModelNote,
  ],
  books: [
    'The model is a local stand-in that only copies from what it is given: it repeats what rules',
    'about layout propose, where a real model would correct them. Pictures of pages are really read.',
    realModelNote,
  ],
};

/**
 * The settings of a demo from the user's own: it always reads with the local scraper and OCR service, which alone reach
 * the sample sites and this machine's Storage, and asks the local model unless LLM_URL and LLM_MODEL both name another.
 */
export function demoSettings(
  given: Record<string, string>,
  demo: keyof typeof localModelNotes = 'leads',
): DemoSettings {
  const { LLM_URL: url, LLM_MODEL: model } = given;
  const replaced =
    url && model ? /^((SCRAPER|OCR)_(URL|AUTH_TOKEN)|JOB_CALLBACK_URL)$/ : /^((SCRAPER|OCR)_(?!ALLOW)|JOB_|LLM_)/;
  const env = Object.fromEntries(Object.entries(given).filter(([name]) => !replaced.test(name)));
  const warnings = settingsPassedOver(given, demo);
  // A real model takes its time.
  if (url && model) return { env, modelNote: [`The model ${model} at ${url} writes.`], warnings, limitMs: 600_000 };
  return {
    env: { ...env, LLM_PRICE_INPUT: '0', LLM_PRICE_OUTPUT: '0' },
    modelNote: localModelNotes[demo],
    warnings,
    limitMs: 120_000,
  };
}

function settingsPassedOver(given: Record<string, string>, demo: keyof typeof localModelNotes): string[] {
  const { LLM_URL: url, LLM_MODEL: model } = given;
  const warnings: string[] = [];
  if (Boolean(url) !== Boolean(model)) {
    const [set, missing] = url ? ['LLM_URL', 'LLM_MODEL'] : ['LLM_MODEL', 'LLM_URL'];
    warnings.push(`${set} is set but ${missing} is not, so the local model writes: set both to use a real one.`);
  }
  const [ignored, local] = demo === 'leads' ? ['SCRAPER_URL', 'scraper'] : ['OCR_URL', 'OCR service'];
  if (ignored && given[ignored]) {
    warnings.push(`${ignored} is ignored: the demo reads with the local ${local}. \`npm run stack\` uses it.`);
  }
  return warnings;
}
