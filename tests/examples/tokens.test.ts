import fc from 'fast-check';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { CHUNK_TOKENS, MOST_CHUNK_BYTES } from '../../supabase/functions/_documents/chunk-places.ts';
import { splitText } from '../../supabase/functions/_documents/split-text.ts';
import { countTokens, MOST_BYTES, tokenPieces } from '../../supabase/functions/_documents/tokens.ts';
import { declarations } from '../support/examples/declarations.ts';
import { huntLength } from '../support/hunt-length.ts';

/** The number of the real tokenizer; long words in parts, since its time grows by the square of their length. */
const trueTokens = (text: string) =>
  (text.match(/\s{0,64}\S{0,64}/gu) ?? []).reduce(
    (sum, part) => sum + encode(part, { disallowedSpecial: new Set() }).length,
    0,
  );
const bytesOf = (text: string) => Buffer.byteLength(text);
const chunksOf = (text: string) => splitText('0b5f1f52-6f3b-4a5c-9d6e-2f1f0f3c7a11', text);
/** How many times its estimate a text of a language may have in true tokens. */
const shortfall = 1.5;
/** The same of a chunk, which a character of several tokens, as in Amharic, fills no more than another. */
const chunkShortfall = 1.75;
/** The tokens that a model for embeddings takes at least; the models that answer take far more. */
const modelLimit = 8191;

/** The texts that an estimate by characters gets wrong: many tokens in few characters, and many bytes in few tokens. */
const hostile = fc
  .array(
    fc.oneof(
      fc.base64String({ minLength: 40, maxLength: 4000 }),
      fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'), maxLength: 3000 }),
      fc.array(fc.string({ unit: fc.constantFrom(...'bcdfghjklmnpqrstvwxz'), minLength: 8, maxLength: 8 }), {
        maxLength: 400,
      }),
      fc.string({ unit: fc.constantFrom(...'!@#$%^&*(){}[]<>:/|~`'), maxLength: 3000 }),
      fc.string({ unit: fc.constantFrom(...' \t\n\r\u00a0\u2003\u3000'), maxLength: 3000 }),
      fc.string({ unit: 'binary', maxLength: 3000 }),
      fc.string({
        unit: fc.constantFrom('𒀀', '𠀀', '龘', '㐀', '\ufffe', '👩‍👩‍👧', 'a\u0301\u0316', '\ue000'),
        maxLength: 1500,
      }),
      fc.integer({ min: 1, max: 3000 }).map((times) => 'x文é'.repeat(times)),
      fc.integer({ min: 1, max: 400 }).map((times) => `${'x'.repeat(60)}${'文'.repeat(60)}`.repeat(times)),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) =>
    parts
      .flat()
      .join(' ')
      .replace(/\p{Surrogate}/gu, '?'),
  );

describe('the estimate of tokens', () => {
  test.each(Object.entries(declarations))('is near the true number in %s', (_, text) => {
    const short = trueTokens(text) / countTokens(text);
    expect(short).toBeLessThanOrEqual(shortfall);
    expect(short).toBeGreaterThan(0.65);
  });

  test('is near the true number in code, tables and keys', () => {
    const code = describe.toString() + expect.toString() + fc.assert.toString();
    const table = Array.from({ length: 99 }, (_, n) => `| ${n} | ${n * 7.5} % | 2026-11-${n} |`).join('\n');
    const keys = Array.from({ length: 99 }, (_, n) => Buffer.from(`${n ** 9} of ${n ** 7}`).toString('hex')).join(' ');
    for (const text of [code, table, keys]) {
      expect(trueTokens(text) / countTokens(text)).toBeLessThanOrEqual(shortfall);
      expect(trueTokens(text) / countTokens(text)).toBeGreaterThan(0.5);
    }
  });

  test('times MOST_BYTES is never below the true number, whatever the text is made of', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(bytesOf(text)).toBeLessThanOrEqual(countTokens(text) * MOST_BYTES);
        expect(trueTokens(text)).toBeLessThanOrEqual(bytesOf(text));
        expect(tokenPieces(text).length).toBeLessThanOrEqual(countTokens(text));
      }),
      { numRuns: huntLength(30, 1000) },
    );
  });
});

describe('a chunk', () => {
  test.each(Object.entries(declarations))('is of about CHUNK_TOKENS true tokens in %s', (_, text) => {
    const chunks = chunksOf(`${text}\n`.repeat(60));
    expect(chunks.length).toBeGreaterThan(2);
    for (const chunk of chunks) expect(trueTokens(chunk.text)).toBeLessThanOrEqual(CHUNK_TOKENS * chunkShortfall);
    expect(trueTokens(chunks[0]?.text ?? '')).toBeGreaterThan(CHUNK_TOKENS * 0.4);
  });

  test('is never larger than what a model takes, whatever the text is made of', () => {
    expect(MOST_CHUNK_BYTES).toBeLessThan(modelLimit);
    fc.assert(
      fc.property(hostile, (text) => {
        fc.pre(text.trim() !== '');
        for (const chunk of chunksOf(text)) expect(bytesOf(chunk.text)).toBeLessThanOrEqual(MOST_CHUNK_BYTES);
      }),
      { numRuns: huntLength(30, 1000) },
    );
  });
});
