import { plainLines } from '../../../supabase/functions/_books/plain-pages.ts';

/** Texts that somebody might write to keep a function busy, each of about `length` UTF-16 units. */
const patterns: Record<string, string> = {
  blanks: ' ',
  'line breaks': '\n',
  'Windows line breaks': '\r\n',
  'no-break spaces and tabs': '\u00a0\t',
  'one word': 'a',
  'capital words': 'Ab ',
  'names and particles': 'Ab de la ',
  digits: '7',
  'numbers and dots': '1.',
  sentences: 'The boat is old. ',
  'one Roman numeral': 'i',
  dots: '.',
  'dots and blanks': '. ',
  'dotted lines': 'Oil .... 12\n',
  'numbered titles': '1.1 Oil 7\n',
  'lines of one letter': 'x\n',
  'lines of one number': '7\n',
  'less-than signs': '<',
  'less-than signs and blanks': '<        ',
  'opening tags': '<b>',
  'opening blocks': '<div>',
  'open comments': '<!--',
  attributes: '<a x="',
  'table rows': '<tr><td>x<td>y',
  entities: '&lt;',
  ampersands: '&',
  brackets: '[',
  'nested brackets': '[(',
  'open links': '[a](',
  links: '[a](b) ',
  URLs: 'https://a.b/c?d=e#f ',
  'one URL': '/a',
  backticks: '`',
  fences: '```\n',
  hashes: '#',
  headings: '# A\n',
  'hashes and blanks': '# ',
  dashes: '-',
  'stars and letters': '**a',
  'table of bars': '| a | b |\n',
  JSON: '{"a":[',
  quotes: '"',
  backslashes: '\\',
  'form feeds': 'x\f',
  'zero width': '\u200b',
  accents: 'a\u0301',
  'accents alone': '\u0301',
  'accents out of order': '\u0301\u0323',
  'halves of characters': '\ud800',
  'halves the wrong way round': '\udc00\ud800',
  'signs that unfold': '\ufdfa',
  Chinese: '中',
  'error names': 'dns error: ',
};

/** The texts by their names, and one whose lines are all different. */
const hostile: Record<string, (length: number) => string> = {
  ...Object.fromEntries(
    Object.entries(patterns).map(([name, part]) => [
      name,
      (length: number) => part.repeat(Math.ceil(length / part.length)),
    ]),
  ),
  'a heading that ends as none does': (length) => `# ${' '.repeat(length)}\rx\n`,
  'headings that end as none does': (length) => `# ${' '.repeat(900)}\rx\n`.repeat(Math.ceil(length / 905)),
  'a line under a line': (length) => `a\n${'-'.repeat(length)}x`,
  'a dotted leader': (length) => `Oil ${'. '.repeat(length / 2)}12`,
  'less-than sign and blanks': (length) => `<${' '.repeat(length)}`,
  'a string in JSON': (length) => JSON.stringify({ text: 'a\\"'.repeat(length / 8) }),
  'JSON that closes': (length) => `${'['.repeat(length / 2)}${']'.repeat(length / 2)}`,
  'a list in JSON': (length) => JSON.stringify(Array.from({ length: length / 4 }, (_, at) => at % 100)),
  'one long URL': (length) => `https://${'a.'.repeat(length / 4)}/${'b/'.repeat(length / 4)}`,
  'accents of every kind': (length) => `a${numbered(length, (at) => String.fromCharCode(0x0300 + ((at * 31) % 0x70)))}`,
  'errors for a time': (length) => `${'dns error: '.repeat(length / 11)}temporary`,
  'blanks around one letter': (length) => `${' '.repeat(length / 2)}x${' '.repeat(length / 2)}`,
  'lines that all differ': (length) => numbered(length, (at) => `Line ${at} tells of ${at * 7919}\n`),
  'titles that all differ': (length) => numbered(length, (at) => `${at} Title ${at * 7919} .... ${at}\n`),
  'headings that all differ': (length) => numbered(length, (at) => `# ${at}\n\nText ${at}\n\n`),
  'pages that all differ': (length) => numbered(length, (at) => `Page ${at}\nText ${at * 7919}\n${at}\f`),
  'names that all differ': (length) => numbered(length, (at) => `Ada${at} met Bob${at} there. `),
};

const kilobyte = 1024;
// Each four times the one before: linear work grows fourfold from one to the next, quadratic work sixteenfold.
const sizes = [4 * kilobyte, 16 * kilobyte, 64 * kilobyte, 256 * kilobyte, 1024 * kilobyte] as const;
const [tiny, small, medium, larger, large] = sizes;

// All times are in milliseconds. Work that takes as long for `small` shows there how it grows.
const slow = 2;
// Work that takes less than this for `medium` is fast enough to be tried on `large` itself.
const fast = 0.3;
// Up to this, growth from one size to the next is that of linear work.
const linearGrowth = 7;
const mostGrowth = 10;
/** Work that takes less for any length is harmless, and too short to be measured. */
const harmless = 100;
const measurable = 8;
// Work that takes less for `larger` would be harmless for `large`, four times as long, were it to grow with the cube of its length.
const harmlessLarger = harmless / 64;
const repetitions = 4;

/** Work on a text that takes time in proportion to its length, or nearly so. */
export type TextWork = (text: string) => unknown;

/** A text, and a name that no other has. */
export interface NamedText {
  name: string;
  text: string;
}

/** Does its work on a text and says how many milliseconds that took. */
export type TextTimer = (text: NamedText) => Promise<number>;

// All works share them.
const made = new Map<string, NamedText>();

/** The lines of a text as those of a page, in letters of several sizes. */
export function sizedLines(text: string) {
  return plainLines(text).map((line, at) => ({ ...line, size: 10 + (at % 3), x: at % 7, y: at }));
}

/** The first text for which the work's time grows faster than it does, and how; null where there is none. */
export async function growthFault(timeOf: TextTimer): Promise<string | null> {
  for (const [name, make] of Object.entries(hostile)) {
    const fault = await faultOn((length) => named(`${name}, ${length}`, () => make(length)), timeOf);
    if (fault) return `${name}: ${fault}`;
  }
  return null;
}

/**
 * Says what grew too fast from one size to the next, in milliseconds; null where nothing did. Two sizes tell how work grows, the
 * smaller the slower it is, and only where they leave a doubt the larger ones are tried, up to a megabyte. The smaller of the
 * two comes last, lest the time that the first call of a function takes hide how it grows.
 */
async function faultOn(textOf: (length: number) => NamedText, timeOf: TextTimer): Promise<string | null> {
  /** Whether the time of the longer text is that of linear work. Bad luck, and what a first call takes, do not come thrice. */
  const isLinear = async (time: number, [shorter, longer]: [number, number]) => {
    const most = linearGrowth * (await timeOf(textOf(shorter)));
    let best = time;
    for (let tries = 1; best > most && tries < 3; tries += 1) best = await timeOf(textOf(longer));
    return best <= most;
  };
  const first = await timeOf(textOf(small));
  if (first >= slow) return (await isLinear(first, [tiny, small])) ? null : provenFault(timeOf, textOf);
  const time = await timeOf(textOf(medium));
  if (time >= fast) return (await isLinear(time, [small, medium])) ? null : provenFault(timeOf, textOf);
  const longer = await timeOf(textOf(larger));
  if (longer <= harmlessLarger || (await isLinear(longer, [medium, larger]))) return null;
  return (await timeOf(textOf(large))) <= harmless ? null : provenFault(timeOf, textOf);
}

/** Measures size by size, and again what seems to grow too fast: only what always does is a fault. */
async function provenFault(timeOf: TextTimer, textOf: (length: number) => NamedText): Promise<string | null> {
  let before = await timeOf(textOf(tiny));
  for (const [at, size] of sizes.slice(1).entries()) {
    const [shorter, text] = [textOf(sizes[at] ?? tiny), textOf(size)];
    let time = await timeOf(text);
    for (let tries = 1; tries < repetitions && isTooMuch(before, time); tries++) {
      before = Math.max(before, await timeOf(shorter));
      time = Math.min(time, await timeOf(text));
    }
    if (isTooMuch(before, time)) {
      const [less, more] = [shorter.text.length, text.text.length];
      return `${less} characters took ${Math.round(before)} ms, and ${more} took ${Math.round(time)} ms`;
    }
    // Had it grown with the square of the length, it would have shown by now.
    if (time > harmless) return null;
    before = time;
  }
  return null;
}

function isTooMuch(before: number, time: number): boolean {
  return time > harmless && time > mostGrowth * Math.max(before, measurable);
}

/**
 * Takes a work's time, of the processor, so that what else the machine does is not counted. The error that the work throws is its answer,
 * unless it is that it went too deep.
 */
export function processorTime(work: TextWork): TextTimer {
  return async ({ text }) => {
    const start = process.cpuUsage();
    try {
      await work(text);
    } catch (error) {
      if (error instanceof RangeError) throw error;
    }
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  };
}

function named(name: string, make: () => string): NamedText {
  const known = made.get(name) ?? { name, text: make() };
  made.set(name, known);
  return known;
}

function numbered(length: number, line: (at: number) => string): string {
  const lines: string[] = [];
  for (let at = 1, total = 0; total < length; at++) {
    const next = line(at);
    lines.push(next);
    total += next.length;
  }
  return lines.join('');
}
