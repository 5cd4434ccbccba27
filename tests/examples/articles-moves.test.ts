// The codes that people may write, told by the requirements and not by the engine: an article is brought to every state in which it can
// rest, and every code is written there; every entry type is inserted with every code. Each write does what stands here, or is
// refused with the remedy and changes nothing.
import { describe, expect } from 'vitest';
import { articlesAtEveryState, Roads } from '../support/examples/article-roads.ts';
import { test } from '../support/examples/articles.ts';
import { everything, makeTrials, type Tried, tryCodes, tryInserts } from '../support/examples/tried-writes.ts';

/** The attempts that are live after a code is written at a state; where the row comes to show another code, that one stands before it. */
type Writes = Record<number, string>;

const steps: Writes = {
  110: 'fetch queued',
  120: 'score queued',
  210: 'summarize queued',
  220: 'tag queued',
  230: 'thumbnail queued',
};
/** The steps up to one: an earlier one starts over, and so does that which is in work or has failed. */
const upTo = (last: number): Writes =>
  Object.fromEntries(Object.entries(steps).filter(([code]) => Number(code) <= last));
const review = { 300: 'review waiting' };
const all = { ...steps, ...review };
const edit = { 320: 'revise waiting' };
const approve = { 330: 'publish queued' };
const reject = { 540: 'nothing' };

const accepted: Record<string, Writes> = {
  // A run that waits at a gate begins at its first step, at an earlier one, or behind those whose output the row has; from the
  // very beginning it goes past these.
  '100': upTo(110),
  '100 with all': { ...all, 110: '300 review waiting' },
  '200': upTo(210),
  '200 with all': { ...all, 110: '300 review waiting' },
  '110': {},
  '111': upTo(110),
  '111 at the service': upTo(110),
  '120': upTo(110),
  '121': upTo(120),
  '210': upTo(120),
  '211': upTo(210),
  '220': upTo(210),
  '221': upTo(220),
  '230': upTo(220),
  '231': upTo(230),
  '300': { ...steps, 310: 'review waiting' },
  '310': { ...all, 320: 'review waiting', ...approve, ...reject },
  '320': { 310: 'review waiting', ...approve, ...reject },
  '330': {},
  // Back to its review it is taken off the site.
  '400': { ...review, ...edit },
  '410': { ...review, ...edit },
  '410 on its way': { ...review, ...edit },
  '320 of 400': { 400: 'nothing', 410: 'republish queued' },
  // Discarded it is what it was, saved without the edit.
  '320 of 410': { 400: '410 republish queued', 410: 'republish queued' },
  '500 of fetch': upTo(110),
  '500 of tag': upTo(220),
  '500 of publish': { ...all, ...approve },
  '500 of republish': { ...all, ...approve, ...edit, 410: 'republish queued' },
  '510': upTo(110),
  '520': upTo(120),
  // It has never been fetched.
  '520 on entry': upTo(110),
  '530': { 120: 'score queued', 200: '210 summarize queued' },
  '540': all,
};

/** The codes that the hint lists as open where that is not what is accepted: some of it depends on what the row brings. */
const listed: Record<string, string> = {
  '100': '110, 120, 210, 220, 230, 300',
  '200': '110, 120, 210, 220, 230, 300',
  '520 on entry': '110, 120',
  '320 of 410': '410',
};

const working = /^(11|12|21|22|23)[01]/;
/** The remedies that a refusal must name: at which states, for which codes. */
const remedies: [states: RegExp, codes: number[], hint: RegExp][] = [
  [/./, [111, 121, 211, 221, 231, 112, 122, 212, 222, 232, 240], /^The engine writes \d+ by itself, as stage/],
  [working, [100, 200], /^The engine writes \d+ by itself/],
  [working, [120, 210, 220, 230, 300], /^Stage \w+ has no result yet, .*millrace\.skip\(run/],
  [working, [310, 320, 330, 410, 500, 510, 520, 530, 540], /millrace\.cancel\(run\)/],
  [/^[12]00$/, [120, 210, 220, 230, 300], /^Write (110|210) instead/],
  [/^300$/, [320, 330, 540], /^Write one of 310.* first/],
  [/^31?0$/, [400], /330/],
  [/^320$/, [110, 120, 210, 220, 230], /^At 320 no stage starts over\. .*310, 330, 540/],
  [/^320$/, [300], /^Write one of 310 first/],
  [/^330$/, [110, 300, 310, 320, 400, 410, 500], /When it is 400, people may write: 300, 320\.$/],
  [/^(330|400|410|320 of)/, [540], /^Stage review was answered with 330 at /],
  [/^4[01]0$/, [110, 310, 500], /people may write: 300, 320\.$/],
  [/^500 of tag|^500 of fetch/, [300], /^Begin it earlier: write 110/],
];

/** The moves that the diagram draws, from the code before the arrow to the one behind it. */
const drawn = [
  ...['100>110', '110>111', '111>112', '112>120', '120>121', '121>122', '122>200', '122>530'],
  ...['>110', '112>200', '>200', '>220', '>300'],
  ...['200>210', '210>211', '211>212', '212>220', '220>221', '221>222', '222>230', '230>231', '231>232', '232>240'],
  '240>300',
  ...['300>310', '310>320', '320>330', '330>400', '310>540'],
  ...['400>320', '320>410'],
];

/** Holds what was tried at a state against what is expected; resolves to the codes that were accepted. */
function expectTried(state: string, id: string, tried: Tried[]): number[] {
  const at = Number.parseInt(state, 10);
  const writes = accepted[state] ?? {};
  const taken: Writes = {};
  for (const { code, shows, live, entry_type, steps: passed = [], faults, refused, message = '', hint = '' } of tried) {
    const write = { state, code, message, hint };
    if (code === at) {
      expect({ ...write, shows, passed, refused }).toEqual({ ...write, shows: at, passed: [], refused: undefined });
    } else if (refused) {
      expect({ ...write, refused }).toEqual({ ...write, refused: 'MR005' });
      expect(message).toContain(id);
      if (code === null) expect(message).toContain('a row cannot leave');
      else expect(message).toMatch(new RegExp(`\\b${code}\\b`));
      if (code !== null && code !== 999) expect(message, state).toMatch(new RegExp(`\\b${at}\\b`));
      for (const [states, codes, remedy] of remedies) {
        if (states.test(state) && codes.includes(code ?? 0))
          expect(write).toMatchObject({ hint: expect.stringMatching(remedy) });
      }
      const open = /people may write: ([\d, ]+)\.$/.exec(hint.replace(/When it is.*/, ''))?.[1];
      if (open) expect({ ...write, open }).toEqual({ ...write, open: listed[state] ?? Object.keys(writes).join(', ') });
      expect(hint).not.toBe('');
    } else {
      const other = shows === code ? '' : `${shows} `;
      taken[code ?? 0] = other + (live ?? 'nothing');
      expect({ ...write, faults, entry_type }).toEqual({
        ...write,
        faults: null,
        entry_type: at >= 500 ? 'retry' : entry_type,
      });
      expect(passed[0]).toBe(`${at}>${at === 320 && other ? shows : code} user:postgres`);
      expect(passed.at(-1)).toMatch(new RegExp(`>${shows} `));
    }
  }
  expect({ state, taken }).toEqual({ state, taken: writes });
  return Object.keys(taken).map(Number);
}

test('at every state each of the codes does what people may do there, or is refused and changes nothing', async ({
  articles,
  engine,
}) => {
  const ids = await articlesAtEveryState(articles, new Roads(articles));
  const rests = new Set(
    [...ids.keys()].map((state) => (/^320/.test(state) ? state.slice(0, 6) : Number.parseInt(state, 10))),
  );
  expect(rests.size).toBe(24);
  expect(Object.keys(accepted).sort()).toEqual([...ids.keys()].sort());
  await makeTrials(engine);
  const before = await everything(engine);
  const moves = new Set<string>();
  for (const [state, id] of ids) {
    const tried = await tryCodes(engine, id);
    expect(tried).toHaveLength(31);
    for (const code of expectTried(state, id, tried)) moves.add(`${Number.parseInt(state, 10)}>${code}`);
  }
  expect(await everything(engine)).toBe(before);
  const told = await engine.rows<{ move: string }>(
    `select distinct from_value || '>' || to_value as move from millrace.status_moves
     where pipeline = 'articles' and by = 'person' and from_value is not null`,
  );
  expect([...moves].sort()).toEqual(told.map(({ move }) => move).sort());
  const passed = await engine.rows<{ move: string }>(
    `select distinct coalesce(from_status::text, '') || '>' || to_status as move from public.status_history`,
  );
  expect(passed.map(({ move }) => move)).toEqual(expect.arrayContaining(drawn));
});

test('the moves that are drawn are those of the diagram', async ({ engine, articles }) => {
  expect(articles).toBeDefined();
  const rows = await engine.rows<{ move: string }>(
    `select coalesce(from_value, '') || '>' || to_value as move from millrace.status_moves
     where pipeline = 'articles' and drawn`,
  );
  expect(rows.map(({ move }) => move).sort()).toEqual([...drawn].sort());
  expect(drawn).toHaveLength(31);
});

const url = 'https://looms.test/new';
const text = { content: 'A text that somebody wrote.' };
const brought = {
  'its address': { url },
  'its address and a text': { url, ...text },
  'a text': text,
  'a summary': { url, summary: 'What it says.' },
  'all that a review needs': { url, summary: 'What it says.', tags: ['looms'], thumbnail_url: '/loom.jpg' },
};

/** The first step that an article has before it. */
function firstStep(type: string, what: string): number {
  if (what === 'all that a review needs') return 300;
  if (what === 'a summary') return 220;
  if (what === 'its address') return 110;
  return type === 'manual' ? 210 : 120;
}

/** The code at which an article begins that brings none. */
function entryCode(type: string, what: string): number {
  const first = firstStep(type, what);
  if (type === 'discovered') return 100;
  return first === 210 ? 200 : first;
}

/** The code of an article that is inserted with a code; undefined where that is refused. */
function shownOnEntry(type: string, what: string, code: number | null): number | undefined {
  const first = firstStep(type, what);
  if (type === 'retry' || (type === 'discovered' && what === 'a text')) return undefined;
  // By these it goes from the beginning, past what it brings.
  if (code === null || code === 100 || code === 110) return first;
  if (code === 200) return first >= 210 ? first : undefined;
  // A step by name is done though the row brings its output; those before it must be done or brought.
  return code in all && code <= first ? code : undefined;
}

describe('a new article is inserted with every code', () => {
  test.for(['discovered', 'manual', 'import', 'retry'])('as %s', async (type, { articles, engine }) => {
    expect(articles).toBeDefined();
    await makeTrials(engine);
    const before = await everything(engine);
    for (const [what, row] of Object.entries(brought)) {
      for (const { code, shows, live, steps: passed, faults, refused, message, hint } of await tryInserts(engine, {
        ...row,
        entry_type: type,
      })) {
        const write = { type, what, code, message, hint };
        const shown = shownOnEntry(type, what, code);
        expect({ ...write, shows, refused }).toEqual({ ...write, shows: shown, refused: shown ? undefined : 'MR005' });
        if (!shown) {
          expect(write).toMatchObject({
            hint: expect.stringMatching(
              /[Ll]eave status_code out|Write \d+ instead|Write "manual"|Give its url|^Known:/,
            ),
          });
          continue;
        }
        const entered = code ?? entryCode(type, what);
        expect({ ...write, live, passed, faults }).toEqual({
          ...write,
          live: all[shown as keyof typeof all],
          passed: [`>${entered} user:postgres`, ...(entered === shown ? [] : [`${entered}>${shown} system:auto`])],
          faults: null,
        });
      }
    }
    expect(await everything(engine)).toBe(before);
  });
});
