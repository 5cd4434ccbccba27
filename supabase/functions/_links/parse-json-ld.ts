import { storableText } from '../_millrace/mod.ts';

const deepest = 30;

/** Reads JSON-LD as pages have it: in comments, with line breaks in texts, with a comma too many. Undefined where it cannot. */
export function parseJsonLd(text: string): unknown {
  const bare = text
    .trim()
    .replace(/^(?:<!--|\/\*\s*<!\[CDATA\[\s*\*\/|\/\/\s*<!\[CDATA\[|<!\[CDATA\[)/, '')
    .replace(/(?:-->|\/\*\s*\]\]>\s*\*\/|\/\/\s*\]\]>|\]\]>)$/, '')
    .replace(/;\s*$/, '')
    .trim();
  const value = parsed(bare) ?? parsed(withoutFaults(bare));
  return value === undefined ? undefined : storable(value, 0);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withoutFaults(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them within texts, and elsewhere they are blanks.
  return text.replace(/[\u0000-\u001f]+/g, ' ').replace(/,(\s*[}\]])/g, '$1');
}

/** Postgres takes no text with a NUL or half a character. */
function storable(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return storableText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > deepest) return null;
  if (Array.isArray(value)) return value.map((item) => storable(item, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [storableText(key), storable(item, depth + 1)]));
}
