/**
 * A value as Postgres writes jsonb: keys by their length and then their bytes, numbers without an exponent. Both sides take
 * the digest of a compiled definition over this text. Throws a RangeError for a number that JSON cannot hold.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(', ')}]`;
  if (typeof value === 'number') return plainNumber(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .map(([key, inner]) => ({ key, bytes: Buffer.from(key), inner }))
    .sort((one, other) => one.bytes.length - other.bytes.length || Buffer.compare(one.bytes, other.bytes));
  return `{${entries.map(({ key, inner }) => `${JSON.stringify(key)}: ${canonicalJson(inner)}`).join(', ')}}`;
}

function plainNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} is no number that JSON can hold.`);
  const text = String(value);
  const [, sign = '', whole = '', part = '', power] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(text) ?? [];
  if (power === undefined) return text;
  const digits = whole + part;
  const point = whole.length + Number(power);
  if (point >= digits.length) return `${sign}${digits.padEnd(point, '0')}`;
  return `${sign}0.${'0'.repeat(-point)}${digits}`;
}
