import type { Unit } from './relevance.ts';

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
const boilerplate =
  /cookie|privacy policy|all rights reserved|terms of (use|service)|skip to (main )?content|sign (in|up)|log ?in|newsletter|©|javascript/i;
const longestText = 400_000;

/**
 * Splits texts into the sentences, headings and values an answer can be made of. Where a text sets parts of itself off,
 * by tags or fences, only those parts count: what stands around them tells the reader what to do with them.
 */
export function readUnits(texts: string[]): Unit[] {
  const units = texts.flatMap((text) =>
    blocksOf(text.slice(0, longestText)).flatMap(({ key, body }) => readBlock(key, body)),
  );
  const seen = new Set<string>();
  return units.filter(({ text }) => !seen.has(text) && seen.add(text));
}

/** The part of a text that stands outside its tags and fences. */
export function requestOf(text: string): string {
  const outside = text.replace(setOff, ' ').trim();
  return outside === '' ? text : outside;
}

const setOff = /<([A-Za-z][\w-]*)(?:\s[^>]*)?>([\s\S]*?)<\/\1\s*>|```(\w*)\n([\s\S]*?)```/g;

function blocksOf(text: string): { key: string; body: string }[] {
  const blocks = [...text.matchAll(setOff)].map((match) => ({ key: match[1] ?? '', body: match[2] ?? match[4] ?? '' }));
  const filled = blocks.filter(({ body }) => /\p{L}{2}/u.test(body));
  return filled.length > 0 ? filled : [{ key: '', body: text }];
}

function readBlock(key: string, body: string): Unit[] {
  const json = parseJson(body.trim());
  if (json !== undefined) return readJson(key, json);
  const start = body.search(/[{[]/);
  const end = Math.max(body.lastIndexOf('}'), body.lastIndexOf(']'));
  const inner = start >= 0 && end > start ? parseJson(body.slice(start, end + 1)) : undefined;
  if (inner === undefined) return readMarkdown(key, body);
  return [...readJson(key, inner), ...readMarkdown(key, `${body.slice(0, start)}\n\n${body.slice(end + 1)}`)];
}

function parseJson(text: string): object | undefined {
  if (!/^[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readJson(key: string, value: unknown): Unit[] {
  if (typeof value === 'string') return readMarkdown(key, value);
  if (typeof value === 'number' || typeof value === 'boolean') {
    return [{ text: String(value), key, kind: 'sentence' }];
  }
  if (Array.isArray(value)) return value.flatMap((item) => readJson(key, item));
  return Object.entries(value ?? {}).flatMap(([name, item]) => readJson(`${key} ${name}`.trim(), item));
}

function readMarkdown(key: string, text: string): Unit[] {
  const units: Unit[] = [];
  let heading = '';
  for (const paragraph of text.split(/\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.|#{1,6})\s)|(?<=^\s*#{1,6} .*)\n/m)) {
    const title = /^\s*#{1,6}\s+(.*)/.exec(paragraph)?.[1];
    const plain = (title ?? paragraph)
      .replace(/^\s*(?:[-*+>]|\d+\.)\s+/, '')
      .replace(/[*_`]{1,2}(?=\S)|(?<=\S)[*_`]{1,2}/g, '');
    if (title !== undefined) heading = plain;
    for (const line of linesOf(plain)) units.push(...readLine(line, title === undefined, `${key} ${heading}`.trim()));
  }
  return units;
}

// Lines of a paragraph belong together, unless each says "label: value".
function linesOf(paragraph: string): string[] {
  const lines = paragraph.split('\n');
  return lines.every((line) => label.test(line)) ? lines : [lines.join(' ')];
}

const label = /^\s*(\p{L}[\p{L}\p{N}_-]*(?: [\p{L}\p{N}_-]+){0,3}):\s+(?=\S)/u;

function readLine(line: string, isText: boolean, context: string): Unit[] {
  const found = label.exec(line);
  const key = found ? `${context} ${found[1]}`.trim() : context;
  const rest = found ? line.slice(found[0].length) : line;
  const sentences = [...segmenter.segment(rest)].map(({ segment }) => segment.replace(/\s+/g, ' ').trim());
  return sentences
    .filter((text) => /[\p{L}\p{N}]/u.test(text) && !/^\S*:\/\/\S*$/.test(text) && !(isText && boilerplate.test(text)))
    .map((text) => ({ text, key: isText ? key : '', kind: isText ? 'sentence' : 'heading' }));
}
