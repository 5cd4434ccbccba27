// Every word that a link may show, and every word that somebody may write there.
import { expect } from 'vitest';
import { projectTest as base } from '../support/engine.ts';
import { extractedJob, Links, stagedJob } from '../support/examples/links.ts';
import { failed } from '../support/worker.ts';

const test = base.extend<{ links: Links }>({
  links: async ({ engine }, use) => use(new Links(engine)),
});

const words = [
  'new',
  'classified',
  'queued',
  'scraping',
  'scraped',
  'staged',
  'extracted',
  'error',
  'dead',
  'scrapped',
];
const kinds = ['job', 'post'] as const;
type Kind = (typeof kinds)[number];

/** The stages of a kind with the word that makes each ready, in order. */
const way = (kind: Kind): [stage: string, ready: string][] => [
  ['classify', 'new'],
  [`scrape_${kind}`, 'queued'],
  [`stage_${kind}`, 'scraped'],
  ['extract', 'staged'],
];

/** Brings the link to where a stage is ready. */
async function bringTo(links: Links, kind: Kind, stage: string): Promise<void> {
  const steps: Record<string, () => Promise<void>> = {
    classify: () => links.classify(kind),
    [`scrape_${kind}`]: () => links.scrape(`scrape_${kind}`, 'one'),
    [`stage_${kind}`]: () => links.finish(`stage_${kind}`, kind === 'job' ? stagedJob() : stagedPost),
    extract: () => links.finish('extract', kind === 'job' ? extractedJob() : { job: null, company: null, by: 'model' }),
  };
  for (const [name] of way(kind)) {
    if (name === stage) return;
    await steps[name]?.();
  }
}

const stagedPost = { kind: 'post', author: 'B', text: 'Hello', language: 'en', extras: {} };

interface Place {
  /** The status that the link shows there. */
  shows: string;
  reach: (links: Links, kind: Kind) => Promise<void>;
  /** The words that go on from there; all others are refused. */
  goesOn: string[];
}

const ended = (stage: number, permanent: boolean) => async (links: Links, kind: Kind) => {
  const name = way(kind)[stage]?.[0] ?? '';
  await bringTo(links, kind, name);
  const worker = await links.worker(name);
  await worker.report(failed(await worker.takeOne(), { code: 'x', message: 'it failed', permanent }));
};
const claimed = (stage: number) => async (links: Links, kind: Kind) => {
  const name = way(kind)[stage]?.[0] ?? '';
  await bringTo(links, kind, name);
  await (await links.worker(name)).takeOne();
};
/** The words by which a link goes on that has come to one of them. */
const upTo = (word: string): string[] => {
  const all = ['new', 'classified', 'queued', 'scraped', 'staged'];
  return all.slice(0, all.indexOf(word) + 1);
};

// A link that is under way goes back to an earlier word, and begins there anew.
const places: Record<string, Place> = {
  'waits to be classified': { shows: 'new', reach: async () => {}, goesOn: [] },
  'is being classified': { shows: 'new', reach: claimed(0), goesOn: [] },
  'waits at its gate': {
    shows: 'classified',
    reach: async (links, kind) => {
      await links.engine.sql.query(`select millrace.pause('links', $1)`, [`route_${kind}`]);
      await links.classify(kind);
    },
    goesOn: upTo('new'),
  },
  'waits for the scraper': {
    shows: 'queued',
    reach: (links, kind) => bringTo(links, kind, `scrape_${kind}`),
    goesOn: upTo('classified'),
  },
  'is being fetched': { shows: 'scraping', reach: claimed(1), goesOn: upTo('queued') },
  'waits to be understood': {
    shows: 'scraped',
    reach: (links, kind) => bringTo(links, kind, `stage_${kind}`),
    goesOn: upTo('queued'),
  },
  'waits for the model': {
    shows: 'staged',
    reach: (links, kind) => bringTo(links, kind, 'extract'),
    goesOn: upTo('scraped'),
  },
  'is extracted': {
    shows: 'extracted',
    reach: (links, kind) => bringTo(links, kind, 'nothing'),
    goesOn: upTo('staged'),
  },
  'waits for another try': { shows: 'error', reach: ended(0, false), goesOn: upTo('new') },
  'waits for another fetch': { shows: 'error', reach: ended(1, false), goesOn: upTo('queued') },
  'waits to be understood again': { shows: 'error', reach: ended(2, false), goesOn: upTo('scraped') },
  'waits for the model again': { shows: 'error', reach: ended(3, false), goesOn: upTo('staged') },
  'could not be classified': { shows: 'dead', reach: ended(0, true), goesOn: upTo('new') },
  'could not be fetched': { shows: 'dead', reach: ended(1, true), goesOn: upTo('queued') },
  'could not be understood': { shows: 'dead', reach: ended(2, true), goesOn: upTo('scraped') },
  'could not be extracted': { shows: 'dead', reach: ended(3, true), goesOn: upTo('staged') },
};

/** The status that a link shows once a word is written: a post that is to be fetched anew waits for the sweep at its own gate. */
const showsAfter = (kind: Kind, word: string): string => (kind === 'post' && word === 'queued' ? 'classified' : word);

test.for(kinds.flatMap((kind) => Object.entries(places).map(([name, place]) => ({ kind, name, place }))))(
  'a $kind that $name goes on by the words that say so, and refuses all others unchanged',
  async ({ kind, place }, { engine, links }) => {
    const id = await links.add(`https://a.test/${kind}s/1`);
    await place.reach(links, kind);
    const before = await links.row(id);
    expect(before.status).toBe(place.shows);
    const went: string[] = [];
    const shown: Record<string, unknown> = {};
    for (const word of words.filter((word) => word !== place.shows)) {
      await engine.sql.query('begin');
      try {
        await links.write(id, word);
        went.push(word);
        shown[word] = (await links.row(id)).status;
        await engine.expectSound();
      } catch (error) {
        expect(error).toMatchObject({ code: 'MR005', hint: expect.stringMatching(/\w/) });
      } finally {
        await engine.sql.query('rollback');
      }
      expect(await links.row(id)).toEqual(before);
    }
    // A post is past the gate of jobs at once; `queued` means no more than that to one that waits at its own.
    const ofPosts = place.shows === 'classified' ? ['queued'] : [];
    const givenUp = ['extracted', 'dead'].includes(place.shows) ? [] : ['dead'];
    expect(went).toEqual([...place.goesOn, ...(kind === 'post' ? ofPosts : []), ...givenUp]);
    expect(shown).toEqual(Object.fromEntries(went.map((word) => [word, showsAfter(kind, word)])));
  },
);
