import addFormats, { type FormatName } from 'ajv-formats';
import fc from 'fast-check';
import { type JsonSchema, Unfillable } from './json-schema.ts';
import type { Material } from './material.ts';
import { type Query, wordsOf } from './relevance.ts';
import { cutTo, quotedIn } from './shape-text.ts';

const found: Record<string, RegExp> = {
  email: /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g,
  uri: /https?:\/\/[^\s"'<>()[\]]*[^\s"'<>()[\].,;:!?]/g,
  date: /\d{4}-\d{2}-\d{2}(?!T?\d)/g,
  'date-time': /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})/g,
  time: /\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2})/g,
  uuid: /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi,
  ipv4: /\d{1,3}(?:\.\d{1,3}){3}/g,
  hostname: /(?:[a-z0-9-]+\.)+[a-z]{2,}/gi,
};
// Values for a format of which the text has none.
const standIns: Record<string, string> = {
  email: 'someone@example.com',
  uri: 'https://example.com/',
  date: '2000-01-01',
  'date-time': '2000-01-01T00:00:00Z',
  time: '00:00:00Z',
  duration: 'P1D',
  uuid: '00000000-0000-4000-8000-000000000000',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  hostname: 'example.com',
  regex: '.*',
  'json-pointer': '/value',
  byte: 'dGV4dA==',
};
const sameKind: Record<string, string> = { url: 'uri', 'uri-reference': 'uri', iri: 'uri', 'idn-email': 'email' };
const longText = 1000;
const shortText = 120;
const longestPiece = 300;

/** Fills a string schema from the material. Throws Unfillable when nothing within its bounds can be found or made. */
export function fillString(schema: JsonSchema, query: Query, material: Material, path: string): string {
  const { minLength = 0, maxLength = Infinity } = schema;
  if (minLength > maxLength) throw new Unfillable(path, `minLength ${minLength} is above maxLength ${maxLength}`);
  const matches = patternTest(schema.pattern, path);
  const hasFormat = formatTest(schema.format);
  const fits = (text: string) => {
    const length = [...text].length;
    return length >= minLength && length <= maxLength && matches(text) && hasFormat(text);
  };
  for (const candidate of candidates(schema, query, material)) if (fits(candidate)) return candidate;
  for (const candidate of madeUp(schema)) if (fits(candidate)) return candidate;
  throw new Unfillable(path, `no text fits ${describe(schema)}`);
}

function* candidates(schema: JsonSchema, query: Query, material: Material): Generator<string> {
  const { minLength = 0, maxLength = Infinity, format, pattern } = schema;
  const kind = format === undefined ? guessKind(query) : (sameKind[format] ?? format);
  const search = kind === undefined ? undefined : found[kind];
  if (search) yield* piecesOf(material.text).flatMap((piece) => piece.match(search) ?? []);
  if (format !== undefined && kind !== undefined && standIns[kind] !== undefined) yield standIns[kind];
  if (pattern !== undefined) yield* piecesOf(material.text);

  const ranked = material.rank(query);
  if (asksForName(query)) {
    const named = ranked
      .filter((index) => sharesKey(material, index, query))
      .map((index) => material.units[index]?.text ?? '');
    yield* [...named, ...material.names].filter((name) => name.length <= shortText);
  }
  if (material.terse) yield* shortValues(ranked, query, material);

  const wanted = wantedSentences(schema, query);
  const chosen = ranked.slice(0, wanted);
  // Sentences read best in the order of the text; short of the least length, more are added.
  for (const index of ranked.slice(wanted)) {
    if (textOf(chosen, material).length >= minLength) break;
    chosen.push(index);
  }
  let text = textOf(chosen, material);
  while (text.length < minLength) text = `${text} ${text}`;
  for (const index of chosen) material.use(index);
  yield cutTo(text, maxLength);
  yield text.slice(0, maxLength);
  for (const index of ranked) yield cutTo(material.units[index]?.text ?? '', maxLength);
}

// A sentence that another one repeats is left out.
function textOf(indexes: number[], material: Material): string {
  const texts = [...indexes].sort((a, b) => a - b).map((index) => material.units[index]?.text ?? '');
  return texts.filter((text, at) => !texts.some((other, index) => index !== at && other.includes(text))).join(' ');
}

function wantedSentences({ maxLength = Infinity, minLength = 0, description = '' }: JsonSchema, query: Query): number {
  if (maxLength <= 300) return 1;
  const asked = new Set([...query.name, ...wordsOf(description)]);
  const long = wordsOf('sentences paragraph summary text body essay article details').some((word) => asked.has(word));
  return long || minLength > shortText || (maxLength >= longText && maxLength !== Infinity) ? 3 : 1;
}

function guessKind(query: Query): string | undefined {
  const last = query.name.at(-1) ?? '';
  if (/^(ur[il]|link|href|websit)$/.test(last)) return 'uri';
  return /^e?mail$/.test(last) ? 'email' : undefined;
}

function asksForName(query: Query): boolean {
  return /^(nam|titl|label)$/.test(query.name.at(-1) ?? '');
}

function sharesKey(material: Material, index: number, query: Query): boolean {
  const key = wordsOf(material.units[index]?.key ?? '');
  return query.name.length > 0 && query.name.every((word) => key.includes(word));
}

function* shortValues(ranked: number[], query: Query, material: Material): Generator<string> {
  for (const index of ranked) if (sharesKey(material, index, query)) yield material.units[index]?.text ?? '';
  if (query.name.some((word) => /^(id|numb|cod|key)$/.test(word))) {
    yield* piecesOf(material.text).filter((piece) => /\d/.test(piece));
  }
  // A name is too little for a question or a text.
  if (query.name.some((word) => /^(query|question|search|text|messag|not|body|content|reason|prompt)$/.test(word)))
    return;
  yield* quotedIn(material.text);
  yield* material.names;
}

function piecesOf(text: string): string[] {
  const pieces = text.split(/[\s,;()<>"“”]+/).filter((piece) => piece.length <= longestPiece);
  return [...new Set(pieces.map((piece) => piece.replace(/[.!?:]+$/, '')))].filter(Boolean);
}

function madeUp({ pattern, minLength = 0, maxLength }: JsonSchema): string[] {
  if (pattern === undefined) return [];
  const texts = textsLike(pattern, minLength > 10 ? 'medium' : 'small');
  return texts.flatMap((text) => (maxLength === undefined ? text : [text, text.slice(0, maxLength)]));
}

/** Texts that match a pattern, short ones first, always the same; none where it uses look-arounds or back-references. */
export function textsLike(pattern: string, size: 'small' | 'medium'): string[] {
  try {
    const texts = fc.sample(fc.stringMatching(new RegExp(pattern, 'u'), { size }), { seed: 1, numRuns: 200 });
    return texts.filter((text) => text !== '').sort((a, b) => a.length - b.length);
  } catch {
    return [];
  }
}

function patternTest(pattern: string | undefined, path: string): (text: string) => boolean {
  if (pattern === undefined) return () => true;
  try {
    const expression = new RegExp(pattern, 'u');
    return (text) => expression.test(text);
  } catch {
    throw new Unfillable(path, `the pattern ${JSON.stringify(pattern)} is no regular expression`);
  }
}

function formatTest(name: string | undefined): (text: string) => boolean {
  if (name === undefined || !(name in standIns || name in sameKind)) return () => true;
  const format = addFormats.get(name as FormatName);
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format;
  if (check instanceof RegExp) return (text) => check.test(text);
  return typeof check === 'function' ? (text) => check(text as never) === true : () => true;
}

function describe({ minLength, maxLength, pattern, format }: JsonSchema): string {
  return JSON.stringify({ minLength, maxLength, pattern, format });
}
