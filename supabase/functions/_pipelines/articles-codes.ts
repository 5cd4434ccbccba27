// Names and descriptions of the codes of `articles`. The hundreds are the layer; in a step, 0 is ready, 1 in
// progress, 2 complete.

/** By category and code: name and description. */
export const values = {
  discovery: {
    100: ['discovered', 'URL found in RSS/sitemap'],
    110: ['to_fetch', 'Ready to fetch content'],
    111: ['fetching', 'Fetch in progress'],
    112: ['fetched', 'Content retrieved'],
    120: ['to_score', 'Ready for relevance scoring'],
    121: ['scoring', 'LLM/embedding scoring in progress'],
    122: ['scored', 'Score assigned, ready to route'],
  },
  enrichment: {
    200: ['pending_enrichment', 'In queue, awaiting first step'],
    210: ['to_summarize', 'Ready for summary generation'],
    211: ['summarizing', 'Summary agent working'],
    212: ['summarized', 'Summary complete'],
    220: ['to_tag', 'Ready for tagging'],
    221: ['tagging', 'Tag agent working'],
    222: ['tagged', 'Tags extracted'],
    230: ['to_thumbnail', 'Ready for thumbnail'],
    231: ['thumbnailing', 'Thumbnail agent working'],
    232: ['thumbnailed', 'Thumbnail generated'],
    240: ['enriched', 'All enrichment complete'],
  },
  review: {
    300: ['pending_review', 'Awaiting curator'],
    310: ['in_review', 'Curator opened item'],
    320: ['editing', 'Curator making changes'],
    330: ['approved', 'Approved, ready to publish'],
  },
  published: {
    400: ['published', 'Live on site'],
    410: ['updated', 'Republished after edit (with history)'],
  },
  terminal: {
    500: ['failed', 'Technical error (retryable)'],
    510: ['unreachable', 'URL 404/timeout'],
    520: ['duplicate', 'Duplicate URL/content'],
    530: ['irrelevant', 'Auto-filtered by scoring'],
    540: ['rejected', 'Human rejected'],
  },
};

/** The chains of codes that the diagram draws; one that begins at null is how an article enters. */
export const drawn = [
  [100, 110, 111, 112, 120, 121, 122, 200],
  [122, 530],
  // Entered by hand: a person has decided already that it is relevant.
  [null, 110],
  [112, 200],
  [null, 200],
  [null, 220],
  [null, 300],
  [200, 210, 211, 212, 220, 221, 222, 230, 231, 232, 240, 300],
  [300, 310, 320, 330, 400],
  [310, 540],
  [400, 320, 410],
];

/** Moves open to people, besides those that follow from the stages. */
export const moves = [
  // It is no duplicate after all; one that was known when it entered has yet to be fetched.
  [520, 120],
  [520, 110],
  // Score it again; or it is wanted whatever its score.
  [530, 120],
  [530, 200],
  // Look at it again; one that was on the site is taken off it.
  [540, 300],
  [400, 300],
  [410, 300],
];

/** At these no stage is started over: somebody edits the article, or it is on its way to the site, or `moves` says what may be done. */
export const closed = [320, 330, 400, 410, 520, 530];

const unreachable = 510;

/** Of the errors of fetch those that say that there is nothing at the address; the others may be mended. */
export const unreachableBy = Object.fromEntries(
  [
    'not_found',
    'forbidden',
    'timeout',
    'dns_not_found',
    'dns_unavailable',
    'connection_refused',
    'connection_lost',
    'tls_error',
    'blocked_address',
    'invalid_url',
    'robots_disallowed',
    'too_many_redirects',
    'http_error',
    'request_rejected',
  ].map((code) => [code, unreachable]),
);
