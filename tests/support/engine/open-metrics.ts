// A strict reader of OpenMetrics 1.0, and of Prometheus's text format, which differs in the names of counters' families.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}
export interface Family {
  name: string;
  type: string;
  help: string;
  samples: Sample[];
}

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const label = '([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\\\\n]|\\\\["\\\\n])*)"';
const sampleLine = new RegExp(`^(${name})(?:\\{((?:${label})(?:,${label})*)\\})? (\\S+)$`);
const number = /^(?:[+-]?Inf|NaN|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/;
const suffixes: Record<string, string[]> = {
  counter: ['_total', '_created'],
  gauge: [''],
  histogram: ['_bucket', '_count', '_sum', '_created'],
};

/** Reads an exposition. Throws with the line that the format does not allow. */
export function readMetrics(text: string, format: 'openmetrics' | 'text'): Family[] {
  if (!text.endsWith('\n')) throw new Error('does not end with a line feed');
  const lines = text.slice(0, -1).split('\n');
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('does not end with # EOF');
  const families = new Map<string, Family>();
  let family: Family | undefined;
  const seen = new Set<string>();
  for (const line of lines) {
    const [, about, of = '', rest = ''] = /^# (TYPE|HELP) (\S+) (.*)$/.exec(line) ?? [];
    if (about === 'TYPE') {
      if (!new RegExp(`^${name}$`).test(of) || !(rest in suffixes)) throw new Error(`no family: ${line}`);
      if (families.has(of)) throw new Error(`a family is told twice, or in two places: ${line}`);
      family = { name: of, type: rest, help: '', samples: [] };
      families.set(of, family);
      continue;
    }
    if (!family) throw new Error(`stands before any family: ${line}`);
    if (about === 'HELP') {
      if (of !== family.name || family.help || family.samples.length > 0) throw new Error(`help out of place: ${line}`);
      family.help = rest;
      continue;
    }
    const sample = readSample(line);
    const base = format === 'text' && family.type === 'counter' ? family.name.replace(/_total$/, '') : family.name;
    const suffix = sample.name.startsWith(base) ? sample.name.slice(base.length) : null;
    if (suffix === null || !suffixes[family.type]?.includes(suffix)) {
      throw new Error(`does not belong to the ${family.type} ${family.name}: ${line}`);
    }
    const key = line.slice(0, line.lastIndexOf(' '));
    if (seen.has(key)) throw new Error(`is told twice: ${line}`);
    seen.add(key);
    if (family.type === 'counter' && !(sample.value >= 0)) throw new Error(`no counter: ${line}`);
    family.samples.push(sample);
  }
  for (const each of families.values()) if (each.type === 'histogram') checkHistogram(each);
  return [...families.values()];
}

function readSample(line: string): Sample {
  const match = sampleLine.exec(line);
  const value = match?.at(-1) ?? '';
  if (!match || !number.test(value)) throw new Error(`no sample: ${line}`);
  const labels: Record<string, string> = {};
  for (const [, key = '', text = ''] of (match[2] ?? '').matchAll(new RegExp(label, 'g'))) {
    if (key in labels) throw new Error(`names a label twice: ${line}`);
    labels[key] = text.replaceAll(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
  }
  return { name: match[1] ?? '', labels, value: Number(value.replace('Inf', 'Infinity')) };
}

/** Buckets rise, the last has no bound, and count is what it holds. */
function checkHistogram({ name: of, samples }: Family): void {
  const groups = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels;
    const key = JSON.stringify(labels);
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  for (const [key, group] of groups) {
    const buckets = group.filter(({ name: is }) => is === `${of}_bucket`);
    const bounds = buckets.map(({ labels }) => Number(labels.le?.replace('Inf', 'Infinity')));
    const rises = (list: number[], least: number) =>
      list.every((n, at) => at === 0 || n - (list[at - 1] ?? 0) >= least);
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${of} ${key} has no bucket for all`);
    if (
      !rises(bounds, Number.MIN_VALUE) ||
      !rises(
        buckets.map(({ value }) => value),
        0,
      )
    ) {
      throw new Error(`${of} ${key} has buckets that fall`);
    }
    const count = group.find(({ name: is }) => is === `${of}_count`)?.value;
    if (count !== buckets.at(-1)?.value) throw new Error(`${of} ${key} counts ${count}`);
  }
}
