export interface DemoSettings {
  env: Record<string, string>;
  /** Which model writes, and which way documents go, in sentences for the user. */
  modelNote: string[];
  /** The user's settings that the demo does not follow, in sentences for the user. */
  warnings: string[];
  /** Whether the demo asks nobody who charges: the model is the local stand-in. */
  isFree: boolean;
  /** Milliseconds without any progress after which a demo is given up. */
  limitMs: number;
}

type Demo = 'leads' | 'books' | 'documents' | 'articles' | 'links';

const realModelNote = 'For a real one set LLM_URL, LLM_AUTH_TOKEN and LLM_MODEL, here or in .env.';
const localModelNotes: Record<Demo, string[]> = {
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
  documents: [
    'The model is a local stand-in that only copies from what it is given: the entities and facts it',
    'finds show the plumbing, not a model’s quality.',
    realModelNote,
  ],
  links: [
    'The model is a local stand-in that copies sentences from the pages: what it finds in a post shows',
    'the plumbing, not a model’s quality.',
    realModelNote,
  ],
  articles: [
    'The model is a local stand-in: it copies sentences from the articles and compares words, so that',
    'summaries, tags and scores show the plumbing, not a model’s quality.',
    realModelNote,
  ],
};
const transcriberNote = [
  'Pictures are really read, but the local transcriber cannot hear: it reads the words that a',
  'recording carries in its own metadata, as the sample does.',
];
/** The services elsewhere that could not read what a demo works on. */
const ignored: Record<Demo, [setting: string, local: string][]> = {
  leads: [['SCRAPER_URL', 'scraper']],
  books: [['OCR_URL', 'OCR service']],
  documents: [
    ['OCR_URL', 'OCR service'],
    ['DEEPGRAM_URL', 'transcriber'],
  ],
  articles: [['SCRAPER_URL', 'scraper']],
  links: [
    ['SCRAPER_URL', 'scraper'],
    ['GOOGLE_SERVICE_ACCOUNT', 'stand-in for Google Sheets'],
    ['NOTION_TOKEN', 'stand-in for Notion'],
  ],
};

/**
 * The settings of a demo from the user's own: it always reads with the local scraper, OCR service and transcriber, which
 * alone reach the sample sites and this machine's Storage, and asks the local model unless LLM_URL and LLM_MODEL both
 * name another. Questions have a cost where the user names prices.
 */
export function demoSettings(given: Record<string, string>, demo: Demo = 'leads'): DemoSettings {
  const { LLM_URL: url, LLM_MODEL: model } = given;
  const isReal = Boolean(url && model);
  const replaced = isReal
    ? /^((SCRAPER|OCR)_(URL|AUTH_TOKEN)|(DEEPGRAM|GOOGLE|SHEETS|NOTION)_(?!ALLOW).*|JOB_CALLBACK_URL)$/
    : /^((SCRAPER|OCR|DEEPGRAM|GOOGLE|SHEETS|NOTION)_(?!ALLOW|BROWSER)|JOB_|LLM_)/;
  const env = Object.fromEntries(Object.entries(given).filter(([name]) => !replaced.test(name)));
  const free: Record<string, string> = isReal ? {} : { LLM_PRICE_INPUT: '0', LLM_PRICE_OUTPUT: '0' };
  const priced = Object.fromEntries(Object.entries(given).filter(([name]) => name.includes('_PRICE_')));
  return {
    env: { ...env, ...free, ...(demo === 'documents' ? documentSettings(given) : {}), ...priced },
    modelNote: [
      ...(isReal ? [`The model ${model} at ${url} writes.`] : localModelNotes[demo]),
      ...(demo === 'documents' ? [...transcriberNote, wayNote(given)] : []),
    ],
    warnings: settingsPassedOver(given, demo),
    isFree: !isReal,
    // A real model takes its time.
    limitMs: isReal ? 600_000 : 180_000,
  };
}

/** Documents go the new way unless the user says otherwise. */
function documentSettings({ USE_NEW_PIPELINE = 'true' }: Record<string, string>): Record<string, string> {
  return { USE_NEW_PIPELINE, DEEPGRAM_PRICE_MINUTE: '0' };
}

function wayNote({ USE_NEW_PIPELINE: value = 'true' }: Record<string, string>): string {
  return value === 'false'
    ? 'USE_NEW_PIPELINE is false: documents go the old way, document_monolith, each in one call.'
    : 'USE_NEW_PIPELINE is true, as it is here unless set: documents go the new way, phase by phase.';
}

function settingsPassedOver(given: Record<string, string>, demo: Demo): string[] {
  const { LLM_URL: url, LLM_MODEL: model } = given;
  const warnings: string[] = [];
  if (Boolean(url) !== Boolean(model)) {
    const [set, missing] = url ? ['LLM_URL', 'LLM_MODEL'] : ['LLM_MODEL', 'LLM_URL'];
    warnings.push(`${set} is set but ${missing} is not, so the local model writes: set both to use a real one.`);
  }
  for (const [setting, local] of ignored[demo]) {
    if (given[setting]) {
      warnings.push(`${setting} is ignored: the demo reads with the local ${local}. \`npm run stack\` uses it.`);
    }
  }
  return warnings;
}
