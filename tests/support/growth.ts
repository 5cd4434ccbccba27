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
  'less-than signs': '<',
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
  backticks: '`',
  fences: '```\n',
  hashes: '#',
  headings: '# A\n',
  dashes: '-',
  'stars and letters': '**a',
  'table of bars': '| a | b |\n',
  'form feeds': 'x\f',
  'zero width': '\u200b',
  accents: 'a\u0301',
  'accents alone': '\u0301',
  'signs that unfold': '\ufdfa',
  Chinese: '中',
  'error names': 'dns error: ',
};

const kilobyte = 1024;
// Each four times the one before: linear work grows fourfold from one to the next, quadratic work sixteenfold.
const sizes = [4 * kilobyte, 16 * kilobyte, 64 * kilobyte, 256 * kilobyte, 1024 * kilobyte];
const mostGrowth = 10;
/** In milliseconds: what takes less is harmless, and too short to be measured. */
const harmless = 80;
const measurable = 8;
const repetitions = 3;

/** Work on a text that takes time in proportion to its length, or nearly so. */
export type TextWork = (text: string) => unknown;

/** The texts by their names, and one whose lines are all different. */
export const hostileTexts: [name: string, of: (length: number) => string][] = [
  ...Object.entries(patterns).map(([name, part]): [string, (length: number) => string] => [
    name,
    (length) => part.repeat(Math.ceil(length / part.length)),
  ]),
  ['errors for a time', (length) => `${'dns error: '.repeat(length / 11)}temporary`],
  ['blanks around one letter', (length) => `${' '.repeat(length / 2)}x${' '.repeat(length / 2)}`],
  ['nested brackets that close', (length) => '['.repeat(length / 2) + ']'.repeat(length / 2)],
  ['lines that all differ', (length) => numbered(length, (at) => `Line ${at} tells of ${at * 7919}\n`)],
  ['titles that all differ', (length) => numbered(length, (at) => `${at} Title ${at * 7919} .... ${at}\n`)],
  ['headings that all differ', (length) => numbered(length, (at) => `# ${at}\n\nText ${at}\n\n`)],
  ['pages that all differ', (length) => numbered(length, (at) => `Page ${at}\nText ${at * 7919}\n${at}\f`)],
  ['names that all differ', (length) => numbered(length, (at) => `Ada${at} met Bob${at} there. `)],
];

/** The time grew too fast from one size to the next: what it was, in milliseconds; null where it did not. */
export async function growthFault(work: TextWork, textOf: (length: number) => string): Promise<string | null> {
  let before = 0;
  for (const [at, size] of sizes.entries()) {
    const text = textOf(size);
    const shorter = textOf(sizes[at - 1] ?? size);
    let time = await timeOf(work, text);
    for (let tries = 1; tries < repetitions && at > 0 && isTooMuch(before, time); tries++) {
      before = Math.max(before, await timeOf(work, shorter));
      time = Math.min(time, await timeOf(work, text));
    }
    if (at > 0 && isTooMuch(before, time)) {
      return `${shorter.length} characters took ${Math.round(before)} ms, and ${text.length} took ${Math.round(time)} ms`;
    }
    // Had it grown with the square of the length, it would have shown by now.
    if (at > 0 && time > harmless) return null;
    before = time;
  }
  return null;
}

function isTooMuch(before: number, time: number): boolean {
  return time > harmless && time > mostGrowth * Math.max(before, measurable);
}

/** Of the processor, so that what else the machine does is not counted. What the work throws is its answer. */
async function timeOf(work: TextWork, text: string): Promise<number> {
  const start = process.cpuUsage();
  try {
    await work(text);
  } catch {
    // A refusal is an answer.
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
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
