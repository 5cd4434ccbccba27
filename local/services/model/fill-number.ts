import { type JsonSchema, Unfillable } from './json-schema.ts';
import type { Material } from './material.ts';
import { type Query, wordsOf } from './relevance.ts';

/** Fills a number schema: the number nearest to the query in the text, else one made from the bounds. */
export function fillNumber(schema: JsonSchema, whole: boolean, query: Query, material: Material, path: string): number {
  const step = whole ? Math.max(1, Math.ceil(schema.multipleOf ?? 1)) : schema.multipleOf;
  const fits = (value: number) =>
    value >= (schema.minimum ?? -Infinity) &&
    value <= (schema.maximum ?? Infinity) &&
    value > (schema.exclusiveMinimum ?? -Infinity) &&
    value < (schema.exclusiveMaximum ?? Infinity) &&
    (!whole || Number.isInteger(value)) &&
    (schema.multipleOf === undefined || isMultiple(value, schema.multipleOf));
  for (const index of material.rank(query)) {
    const text = material.units[index]?.text ?? '';
    const number = numbersIn(text, query).find(fits);
    if (number === undefined) continue;
    material.use(index);
    return number;
  }
  const made = betweenBounds(schema, step).find(fits);
  if (made === undefined) throw new Unfillable(path, 'no number lies within its bounds');
  return made;
}

// The numbers of a text; the one nearest before a word of the query comes first.
function numbersIn(text: string, query: Query): number[] {
  const asked = new Set(query.name);
  const found = [...text.matchAll(/(?<![\p{L}\d.])-?\d[\d,]*(?:\.\d+)?(?![\p{L}\d])/gu)].map((match) => {
    const following = wordsOf(text.slice(match.index + match[0].length)).findIndex((word) => asked.has(word));
    return { value: Number(match[0].replace(/,/g, '')), distance: following < 0 ? Infinity : following };
  });
  return found.sort((a, b) => (a.distance === b.distance ? 0 : a.distance - b.distance)).map(({ value }) => value);
}

function betweenBounds(schema: JsonSchema, step: number | undefined): number[] {
  const low = Math.max(schema.minimum ?? -Infinity, schema.exclusiveMinimum ?? -Infinity);
  const high = Math.min(schema.maximum ?? Infinity, schema.exclusiveMaximum ?? Infinity);
  const middle = Number.isFinite(low) && Number.isFinite(high) ? (low + high) / 2 : undefined;
  const starts = [middle, 0, low, high].filter((start) => start !== undefined && Number.isFinite(start)) as number[];
  return starts.flatMap((start) => {
    if (step === undefined) return [start, start + 1, start - 1];
    const down = Math.floor(start / step) * step;
    return [down, down + step, down - step].map((value) => Number(value.toPrecision(12)));
  });
}

// As the validator checks it: the quotient has to be whole.
function isMultiple(value: number, step: number): boolean {
  return Number.isInteger(value / step);
}
