import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { nextSteps } from '../../cli/operate/alerts.ts';
import { headLines, type Summary } from '../../cli/operate/summary.ts';
import {
  describeAlert,
  playbookOf,
  sayAlert,
  sayNow,
  secondsInWords,
} from '../../supabase/functions/_millrace/alerts/say-alert.ts';

test.for([
  [1, '1 second'],
  [90, '1 minute 30 seconds'],
  [7200, '2 hours'],
  [86_585, '1 day 3 minutes'],
  [0.4, '0 seconds'],
] as const)('%s seconds are told as %s, in their two largest units', ([seconds, words]) => {
  expect(secondsInWords(seconds)).toBe(words);
});

test('a sentence says what, where and for how long, and what is counted to a cap says so', () => {
  const facts = { kind: 'backlog', pipeline: 'flow', stage: 'only', value: 10_001, above: 1000 };
  expect(sayAlert(facts)).toBe('10,000+ runs are ready at only of flow, above 1,000');
  const times = { since: '2026-11-02T09:00:00+00:00', at: '2026-11-02T11:05:59Z' };
  expect(sayAlert({ ...facts, ...times })).toMatch(/, above 1,000, for 2 hours 5 minutes$/);
  const sla = { kind: 'run_sla', pipeline: 'flow', stage: null, value: 700, above: 600, detail: 'p95' };
  expect(sayAlert(sla)).toBe('p95 of flow end to end is about 11 minutes 40 seconds, above its bound of 10 minutes');
});

test('an alert of the engine says what its checks have found, not what they looked for', () => {
  const detail = 'no stage is misconfigured: intel of leads since 2026-11-29 20:44:00+00; not so: nothing is paused';
  expect(sayAlert({ kind: 'engine', detail })).toBe(
    'the engine is not well: a stage is misconfigured: intel of leads since 2026-11-29 20:44 UTC; something is paused',
  );
});

test('a kind that only another release knows is named, and has a playbook all the same', () => {
  expect(sayAlert({ kind: 'tomorrow' })).toBe('an alert of kind tomorrow');
  expect(sayAlert({ kind: 'tomorrow', pipeline: 'flow', stage: 'only' })).toBe(
    'an alert of kind tomorrow at only of flow',
  );
  expect(playbookOf({ kind: 'tomorrow', playbook: null })).toBe('docs/playbooks/engine.md');
  expect(playbookOf({ kind: 'dead', playbook: 'our/page.md' })).toBe('our/page.md');
  const refused = { kind: 'error_share', detail: 'misconfigured', detail_now: 'rate_limited' };
  expect(playbookOf(refused), 'a service asks for less').toBe('docs/playbooks/throttle.md');
  expect(playbookOf({ kind: 'dead', detail: 'boom' })).toBe('docs/playbooks/permanent-failures.md');
  expect(playbookOf({ kind: 'dead' }, 'https://wiki.test/p/')).toBe('https://wiki.test/p/permanent-failures.md');
});

test.for([
  [{ kind: 'backlog', value: 1200, value_now: 2400 }, 'now 2,400'],
  [
    { kind: 'dead', value: 11, value_now: 11, detail: 'boom', detail_now: 'rate_limited' },
    'now most often as rate_limited',
  ],
  [{ kind: 'error_share', value: 0.4, value_now: 0.62, detail: 'boom', detail_now: 'boom' }, 'now 62 %'],
  [{ kind: 'refused', value: 660, value_now: 1260, detail: 'a', detail_now: 'b' }, 'now 21 minutes'],
  [{ kind: 'unattended', value: 47, value_now: 130, detail: 'a', detail_now: 'a' }, 'now 2 minutes 10 seconds'],
  [{ kind: 'engine', value: 1, value_now: 2, detail: 'a', detail_now: 'a; b' }, 'now a; b'],
  [{ kind: 'backlog', value: 1200, value_now: 1200 }, undefined],
  [{ kind: 'backlog', value: 1200, value_now: null }, 'over by now'],
  [
    {
      kind: 'backlog',
      value_now: null,
      below_since: '2026-11-02T10:03:00+01:00',
      ends_at: '2026-11-02T10:08:00+01:00',
    },
    'no longer above its bound since 09:03:00 UTC; it ends at 09:08:00 UTC',
  ],
  [{ kind: 'backlog', value: 1200 }, undefined],
] as const)('how an alert stands now is said where it has changed: %o', ([facts, said]) => {
  expect(sayNow(facts)).toBe(said);
});

test('an open alert says its value when raised and the one now, which a resolved one does not have', () => {
  const facts = {
    kind: 'dead',
    pipeline: 'flow',
    stage: 'only',
    value: 18,
    above: 10,
    detail: 'boom',
    span_seconds: 3600,
  };
  const raised = '18 runs of only of flow failed in the last hour, most often as boom, above 10';
  expect(describeAlert({ ...facts, value_now: 120, detail_now: 'rate_limited' })).toBe(
    `${raised}, now 120, most often as rate_limited`,
  );
  expect(describeAlert({ ...facts, value_now: 18, detail_now: 'boom' })).toBe(raised);
  expect(describeAlert({ ...facts, value_now: null, detail_now: null })).toBe(`${raised}, over by now`);
  expect(describeAlert({ ...facts, value_now: null, resolved_at: '2026-11-02T09:00:00Z' }), 'ended').toBe(raised);
  expect(describeAlert(facts)).toBe(raised);
});

test('the list of what is not well at the terminal says how an alert stands now', () => {
  const alert = { id: 7, kind: 'backlog', pipeline: 'flow', stage: 'only', value: 1200, above: 1000, value_now: 2400 };
  const well = { ok: false, faults: [{ kind: 'alert', what: 'alert backlog', alert }], more: 0, dead_last_day: '0' };
  const overview = { now: '2026-11-02T09:00:00Z', last_sweep_at: null, well, pipelines: [{}], bulks: [] };
  expect(headLines({ overview } as unknown as Summary).join(' ')).toMatch(/above 1,000, now 2,400/);
});

test('an alert leads to the list of the dead only where something failed for good', () => {
  const look = (kind: string, pipeline: string | null) =>
    stripVTControlCharacters(nextSteps({ id: 1, kind, pipeline, playbook: 'p' } as never)[1] ?? '');
  expect(look('dead', 'flow')).toBe('Look: npx millrace dead flow');
  expect(look('error_share', 'flow')).toBe('Look: npx millrace status flow');
  expect(look('engine', null)).toBe('Look: npx millrace status');
});
