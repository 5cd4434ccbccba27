// The values of a status column: where a definition uses them, and in which order a row passes them.

import type { PipelineOptions, StageDefinition } from '../define/definition-schema.ts';
import { canonicalJson } from './canonical-json.ts';

export type StatusDefinition = NonNullable<PipelineOptions['entity']['status']>;
type Stages = Record<string, StageDefinition>;
type Shows = Record<string, unknown> | undefined;

/** Returns the field `shows` of a stage; undefined where it has none. */
export const showsOf = (stage: StageDefinition | undefined): Shows =>
  stage && 'shows' in stage ? (stage.shows as Shows) : undefined;

/** Returns the values that a stage shows while it is under way. */
export function liveValues(shows: Shows): string[] {
  const { queued, backoff, started, asked, interim = [] } = shows ?? {};
  return [queued, backoff, started, asked, ...(interim as unknown[])]
    .filter((value) => value !== undefined)
    .map(String);
}

const failures = (shows: Shows) => Object.values((shows?.failed ?? {}) as object).map(String);
const answersOf = (shows: Shows) => Object.keys((shows?.answers ?? {}) as object);

/**
 * Lists every value that a definition uses, with its positions. All failures count as one position, since every stage may
 * fail alike, and so do all values of one stage.
 */
export function valuesUsed(status: StatusDefinition, stages: Stages): Map<string, Set<string>> {
  const used = new Map<string, Set<string>>();
  const use = (position: string, values: unknown[]) => {
    for (const value of values.filter((one) => one !== undefined).map(String)) {
      used.set(value, (used.get(value) ?? new Set()).add(position));
    }
  };
  const ends = Object.values(status.ends).map(String);
  for (const [name, stage] of Object.entries(stages)) {
    const shows = showsOf(stage);
    use(`stage ${name}`, [...liveValues(shows), shows?.completed]);
    for (const answer of answersOf(shows)) use(ends.includes(answer) ? 'ends' : `stage ${name}`, [answer]);
    use('failures', failures(shows));
  }
  use('failures', [status.failed]);
  use('ends', ends);
  for (const [name, { enter, leave }] of Object.entries(status.layers)) use(`layer ${name}`, [enter, leave]);
  return used;
}

/** Lists the value that a definition shows at each position, so that a changed value can be found. */
export function valuesByPosition({ failed, ends, layers }: StatusDefinition, stages: Stages): Record<string, string> {
  const ofStage = ([name, stage]: [string, StageDefinition]) => {
    const { failed = {}, interim = [], answers = {}, ...shows } = (showsOf(stage) ?? {}) as Record<string, object>;
    const positions = [
      ...['queued', 'backoff', 'started', 'completed', 'asked'].map((position) => [position, shows[position]]),
      ...Object.entries(failed).map(([code, value]) => [`failed ${code}`, value]),
      ...Object.entries(interim).map(([at, value]) => [`interim ${at}`, value]),
      ...Object.entries(answers).map(([value, { decision }]) => [`answer ${canonicalJson(decision)}`, value]),
    ];
    return positions.map(([position, value]) => [`${name} ${position}`, value]);
  };
  const all = [
    ...Object.entries(stages).flatMap(ofStage),
    ['failed', failed],
    ...Object.entries(ends).map(([end, value]) => [`ends ${end}`, value]),
    ...Object.entries(layers).flatMap(([name, { enter, leave }]) => [
      [`layer ${name} enter`, enter],
      [`layer ${name} leave`, leave],
    ]),
  ];
  const shown = all.filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(shown.map(([position, value]) => [position, String(value)]));
}

/** One value as millrace.status_values holds it. */
export interface StatusValue {
  value: string;
  name: string;
  description: string;
  category: string;
  is_terminal: boolean;
  sort_order: number;
}

/**
 * The values of a definition in the order in which a row passes them; those beside the chain come last, failures and endings among
 * them. `order` names the stages of the chain.
 */
export function statusValues(status: StatusDefinition, stages: Stages, order: string[]): StatusValue[] {
  const passed = passedValues(status, stages, order);
  const ends = Object.values(status.ends).map(String);
  const terminal = new Set([
    String(status.failed),
    ...ends,
    ...order.flatMap((name) => failures(showsOf(stages[name]))),
  ]);
  const position = (value: string) => (passed.includes(value) ? passed.indexOf(value) : passed.length);
  const listed = Object.entries(status.values).flatMap(([category, values]) =>
    Object.entries(values).map(([value, texts]) => ({ value, texts, category })),
  );
  listed.sort((one, other) => position(one.value) - position(other.value) || byLength(one.value, other.value));
  return listed.map(({ value, texts, category }, at) => ({
    value,
    name: (texts.length > 1 && texts[0]) || value,
    description: texts.at(-1) ?? '',
    category,
    is_terminal: terminal.has(value),
    sort_order: at + 1,
  }));
}

const byLength = (one: string, other: string) => one.length - other.length || (one < other ? -1 : 1);

/** Returns the values that a row passes on its way through the whole chain. */
function passedValues(status: StatusDefinition, stages: Stages, order: string[]): string[] {
  const ends = Object.values(status.ends).map(String);
  const layerOf = (stage: string | undefined) =>
    Object.keys(status.layers).find((name) => stage !== undefined && status.layers[name]?.stages.includes(stage));
  const values = order.flatMap((name, position) => {
    const shows = showsOf(stages[name]);
    const layer = layerOf(name);
    const { enter, leave } = (layer !== undefined && status.layers[layer]) || {};
    const opens = position === 0 || layer !== layerOf(order[position - 1]);
    const closes = position === order.length - 1 || layer !== layerOf(order[position + 1]);
    return [
      opens ? enter : undefined,
      ...liveValues(shows),
      ...answersOf(shows)
        .filter((answer) => !ends.includes(answer))
        .sort(byLength),
      shows?.completed,
      closes ? leave : undefined,
    ];
  });
  return values.filter((value) => value !== undefined).map(String);
}

/** Adds to the values of a stage the name of its layer, and the values at which the layer is entered and left. */
export function showsInLayer(status: StatusDefinition | undefined, name: string, shows: unknown): unknown {
  if (typeof shows !== 'object' || shows === null) return undefined;
  const [layer, found] = Object.entries(status?.layers ?? {}).find(([, { stages }]) => stages.includes(name)) ?? [];
  return { ...shows, ...(found && { layer, enter: found.enter, leave: found.leave }) };
}
