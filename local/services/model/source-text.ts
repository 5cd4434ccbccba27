import type { Unit } from './relevance.ts';
import { cutTo } from './shape-text.ts';

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
const boilerplate =
  /cookie|privacy policy|all rights reserved|terms of (use|service)|skip to (main )?content|sign (in|up)|log ?in|newsletter|©|javascript/i;

// Bounds on what is read, so that no prompt keeps the service busy for long.
const longestText = 200_000;
const longestSentence = 1000;
const mostUnits = 4000;
const deepestJson = 30;
const mostUnclosed = 200;

/**
 * Splits texts into the sentences, headings and values an answer can be made of. Where a text sets parts of itself off,
 * by tags or fences, only those parts count: what stands around them tells the reader what to do with them.
 */
export function readUnits(texts: string[]): Unit[] {
  const units = texts.flatMap((text) => {
    const parts = setOffParts(text.slice(0, longestText)).filter(({ body }) => /\p{L}{2}/u.test(body));
    const blocks = parts.length > 0 ? parts : [{ key: '', body: text.slice(0, longestText) }];
    return blocks.flatMap(({ key, body }) => readBlock(key, body));
  });
  const seen = new Set<string>();
  return units.filter(({ text }) => !seen.has(text) && seen.add(text)).slice(0, mostUnits);
}

/** Returns the part of a text that stands outside its tags and fences. */
export function requestOf(text: string): string {
  let at = 0;
  let outside = '';
  for (const { start, end } of setOffParts(text)) {
    outside += ` ${text.slice(at, start)}`;
    at = end;
  }
  outside = `${outside} ${text.slice(at)}`.trim();
  return outside === '' ? text : outside;
}

/** Returns the objects that stand in a text as JSON, each alone within tags or fences. */
export function objectsIn(text: string): object[] {
  return setOffParts(text.slice(0, longestText))
    .map(({ body }) => parseJson(body))
    .filter((value) => typeof value === 'object' && value !== null);
}

function setOffParts(text: string): { key: string; body: string; start: number; end: number }[] {
  const opening = /<([A-Za-z][\w-]*)(?:\s[^<>]*)?>|```\w*\n/g;
  const unclosed = new Set<string>();
  const parts = [];
  for (let match = opening.exec(text); match && unclosed.size < mostUnclosed; match = opening.exec(text)) {
    const closing = match[1] === undefined ? '```' : `</${match[1]}>`;
    const close = unclosed.has(closing) ? -1 : text.indexOf(closing, opening.lastIndex);
    if (close < 0) {
      unclosed.add(closing);
      continue;
    }
    const body = text.slice(opening.lastIndex, close);
    opening.lastIndex = close + closing.length;
    parts.push({ key: match[1] ?? '', body, start: match.index, end: opening.lastIndex });
  }
  return parts;
}

function readBlock(key: string, body: string): Unit[] {
  const start = body.search(/[{[]/);
  const end = Math.max(body.lastIndexOf('}'), body.lastIndexOf(']'));
  const json = start >= 0 && end > start ? parseJson(body.slice(start, end + 1)) : undefined;
  if (json === undefined) return readMarkdown(key, body);
  return [...readJson(key, json, 0), ...readMarkdown(key, `${body.slice(0, start)}\n\n${body.slice(end + 1)}`)];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readJson(key: string, value: unknown, depth: number): Unit[] {
  if (depth > deepestJson) return [];
  if (typeof value === 'string') return readMarkdown(key, value);
  if (typeof value === 'number' || typeof value === 'boolean') return [{ text: String(value), key, kind: 'sentence' }];
  if (Array.isArray(value)) return value.flatMap((item) => readJson(key, item, depth + 1));
  return Object.entries(value ?? {}).flatMap(([name, item]) => readJson(`${key} ${name}`.trim(), item, depth + 1));
}

function readMarkdown(key: string, text: string): Unit[] {
  const units: Unit[] = [];
  let heading = '';
  let paragraph: string[] = [];
  const context = () => `${key} ${heading}`.trim();
  const endParagraph = () => {
    units.push(...readLine(paragraph.join(' '), context()));
    paragraph = [];
  };
  for (const line of text.split('\n').map((raw) => raw.trim())) {
    const title = /^#{1,6}\s+(.*)/.exec(line)?.[1];
    const isItem = /^(?:[-*+>]|\d+\.)\s/.test(line);
    if (line === '' || title !== undefined || isItem || label.test(line)) endParagraph();
    if (title !== undefined) {
      heading = plain(title);
      units.push(...sentencesOf(heading).map((found): Unit => ({ text: found, key: '', kind: 'heading' })));
    } else if (label.test(line)) units.push(...readLine(plain(line), context()));
    else if (line !== '') paragraph.push(plain(isItem ? line.replace(/^\S+\s+/, '') : line));
  }
  endParagraph();
  return units;
}

function plain(text: string): string {
  return text.replace(/[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}(?=\s|$)/g, '');
}

// "Opening hours: nine to five" says under what its text stands.
const label = /^(\p{L}[\p{L}\p{N}_-]*(?: [\p{L}\p{N}_-]+){0,3}):\s+(?=\S)/u;

function readLine(line: string, context: string): Unit[] {
  const found = label.exec(line);
  const key = found ? `${context} ${found[1]}`.trim() : context;
  return sentencesOf(found ? line.slice(found[0].length) : line)
    .filter((text) => !/^\S*:\/\/\S*$/.test(text) && !boilerplate.test(text))
    .map((text) => ({ text, key, kind: 'sentence' }));
}

function sentencesOf(text: string): string[] {
  // The segmenter takes time with the square of the length, so that long texts go through in pieces.
  const pieces = text.match(/[\s\S]{1,2000}[.!?](?=\s)|[\s\S]{1,2000}/g) ?? [];
  return pieces
    .flatMap((piece) => [...segmenter.segment(piece)])
    .map(({ segment }) => cutTo(segment.replace(/\s+/g, ' ').trim(), longestSentence))
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}
