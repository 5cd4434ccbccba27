import type { AlertFacts } from '../engine/alert-contract.ts';
import type { HealthFault } from '../engine/metrics-contract.ts';

const units: [string, number][] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

/** Says a time in its two largest units: `1 hour 5 minutes`. */
export function secondsInWords(seconds: number): string {
  let left = Math.max(0, Math.floor(seconds));
  const parts = units.flatMap(([unit, each]) => {
    const count = Math.floor(left / each);
    left -= count * each;
    return count > 0 ? [`${count} ${unit}${count > 1 ? 's' : ''}`] : [];
  });
  return parts.slice(0, 2).join(' ') || '0 seconds';
}

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 });
/** Writes a count, which is capped at 10,000. */
const counted = (value: number) => (value > 10_000 ? '10,000+' : grouped.format(value));
const runs = (value: number) => `${counted(value)} run${value === 1 ? '' : 's'}`;

type Said = Required<{ [Name in 'value' | 'above']: number }> & { place: string; detail: string; span: string };

const mostOften = (code: string) => (code ? `, most often as ${code}` : '');

const sentences = {
  run_sla: ({ value, above, place, detail }) =>
    `${detail} of ${place} end to end is about ${secondsInWords(value)}, above its bound of ${secondsInWords(above)}`,
  error_share: ({ value, above, place, span, detail }) =>
    `${Math.round(value * 100)} % of what ended at ${place} in the last ${span} failed${mostOften(detail)}, ` +
    `above ${grouped.format(above * 100)} %`,
  backlog: ({ value, above, place }) =>
    `${runs(value)} ${value === 1 ? 'is' : 'are'} ready at ${place}, above ${grouped.format(above)}`,
  dead: ({ value, above, place, span, detail }) =>
    `${runs(value)} of ${place} failed in the last ${span}${mostOften(detail)}, above ${grouped.format(above)}`,
  spend: ({ value, above, place, span }) =>
    `${place} spent ${value.toFixed(2)} US dollars in the last ${span}, above ${above.toFixed(2)}`,
  late: ({ value, place, detail }) =>
    `${runs(value)} ${value === 1 ? 'is' : 'are'} late at ${place}, for longest run ${detail}`,
  refused: ({ value, above, place, detail }) =>
    `services hold ${place} back for ${secondsInWords(value)}, above ${secondsInWords(above)}: ${detail}`,
  unattended: ({ value, place, detail }) =>
    `nobody has taken up what is ready at ${place} for ${secondsInWords(value)}: ${detail}`,
  engine: ({ detail }) => `the engine is not well: ${plainly(detail)}`,
} satisfies Record<string, (said: Said) => string>;

type Kind = keyof typeof sentences;
const isKind = (kind: string | null | undefined): kind is Kind => kind != null && Object.hasOwn(sentences, kind);

const seconds = (value: number) => secondsInWords(value);
// An alert of the engine has no value.
const values: Record<Exclude<Kind, 'engine'>, (value: number) => string> = {
  run_sla: seconds,
  refused: seconds,
  unattended: seconds,
  error_share: (value) => `${Math.round(value * 100)} %`,
  spend: (value) => `${value.toFixed(2)} US dollars`,
  backlog: counted,
  dead: counted,
  late: counted,
};

/** Writes a time of day in UTC, since people in several zones read it. */
const timeInWords = (at: string) => `${new Date(at).toISOString().slice(11, 19)} UTC`;

/**
 * Returns how an alert stands now where that is not what its sentence says, else undefined.
 *
 * @example
 * ```ts
 * sayNow({ kind: 'backlog', value: 1200, value_now: 2400 });
 * // 'now 2,400'
 * ```
 */
export function sayNow({ kind, value, detail, value_now, detail_now, ...over }: AlertFacts): string | undefined {
  if (value_now === undefined) return undefined;
  if (value_now === null) {
    if (!over.below_since || !over.ends_at) return 'over by now';
    return `no longer above its bound since ${timeInWords(over.below_since)}; it ends at ${timeInWords(over.ends_at)}`;
  }
  const inWords = isKind(kind) && kind !== 'engine' ? values[kind] : undefined;
  const count = inWords && inWords(value_now) !== inWords(value ?? 0) ? inWords(value_now) : undefined;
  // Leaves out a change of the longest late run or of a pause's times, which calls for nothing new.
  const isNew = kind !== 'late' && kind !== 'refused' && detail_now && detail_now !== detail;
  const isCode = kind === 'error_share' || kind === 'dead';
  const parts = [count, isNew ? `${isCode ? 'most often as ' : ''}${detail_now}` : undefined].filter(
    (part) => part !== undefined,
  );
  return parts.length > 0 ? `now ${parts.join(', ')}` : undefined;
}

/**
 * Says in one sentence what is wrong, where, and for how long.
 *
 * @example
 * ```ts
 * sayAlert({ kind: 'backlog', pipeline: 'leads', stage: 'scrape', value: 1200, above: 1000 });
 * // '1,200 runs are ready at scrape of leads, above 1,000'
 * ```
 */
export function sayAlert(facts: AlertFacts): string {
  const { kind, pipeline, stage, value, above, detail, span_seconds, since, at } = facts;
  const say = isKind(kind) ? sentences[kind] : undefined;
  const place = [stage, pipeline].filter(Boolean).join(' of ');
  if (!say) return [detail ?? `an alert of kind ${kind}`, place].filter(Boolean).join(' at ');
  const said = {
    value: value ?? 0,
    above: above ?? 0,
    detail: detail ?? '',
    place,
    // Writes "the last hour", but "the last 2 hours".
    span: secondsInWords(span_seconds ?? 0).replace(/^1 (?=\w+$)/, ''),
  };
  const seconds = since && at ? (Date.parse(at) - Date.parse(since)) / 1000 : 0;
  return `${say(said)}${seconds >= 60 ? `, for ${secondsInWords(seconds)}` : ''}`;
}

/** Says what is wrong, as when it was raised, and how an open alert stands now: `18 runs are ready at a of b, above 10, now 120`. */
export const describeAlert = (facts: AlertFacts): string =>
  [sayAlert(facts), facts.resolved_at ? undefined : sayNow(facts)].filter((part) => part !== undefined).join(', ');

/** Checks of doctor() whose names say what should be, each with the words for its failure. */
const failed: Record<string, string> = {
  'no stage is misconfigured': 'a stage is misconfigured',
  'no invariant is violated': 'an invariant is violated',
  'no errors in the last hour': 'errors in the last hour',
  'nothing is paused': 'something is paused',
  'rows that show work as queued have a run': 'rows that show work as queued have no run',
};

/** Says the findings of an engine's alert as what their checks have found, with readable times. */
const plainly = (findings: string) =>
  Object.entries(failed).reduce(
    (said, [check, found]) => said.replace(`not so: ${check}`, found).replace(check, found),
    withTimes(findings),
  );

/** Says what a failed check has found; undefined where its own words say how it should be. */
export const sayFailed = (what: string): string | undefined => failed[what];

/** Returns a text of the engine with its times to the minute, as people write them. */
export const withTimes = (text: string) => text.replace(/(\d{4}-\d\d-\d\d \d\d:\d\d):[\d.]+\+00/g, '$1 UTC');

/** Says what is not well in one sentence. */
export function sayFault({ kind, what, detail, alert }: HealthFault): string {
  if (alert) return describeAlert(alert);
  const said = kind === 'finding' ? (sayFailed(what) ?? `not so: ${what}`) : what;
  return `${said}${detail ? `: ${withTimes(detail)}` : ''}`;
}

const pages: Record<string, string> = {
  run_sla: 'stuck',
  late: 'stuck',
  unattended: 'stuck',
  backlog: 'throttle',
  refused: 'throttle',
  error_share: 'reprocess',
  dead: 'permanent-failures',
  spend: 'budget',
};

/** Codes of services that ask for less at once. */
const asksForLess = ['rate_limited', 'overloaded'];

/** The page that says what to do: the address that a rule names, or the page of its code or kind in the folder `playbooks`. */
export function playbookOf(
  { kind, detail, detail_now, playbook }: AlertFacts & { playbook?: string | null | undefined },
  playbooks = 'docs/playbooks',
): string {
  const page = asksForLess.includes(detail_now ?? detail ?? '') ? 'throttle' : (pages[kind ?? ''] ?? 'engine');
  return playbook ?? `${playbooks.replace(/\/+$/, '')}/${page}.md`;
}
