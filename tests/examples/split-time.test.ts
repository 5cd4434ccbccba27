// How much work a text of short words makes: a function has 2 s of CPU, and asking tokenx about a word takes most of it.
import fc from 'fast-check';
import { estimateTokenCount } from 'tokenx';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { MAX_SIZE, splitText } from '../../supabase/functions/_documents/split-text.ts';
import { countTokens } from '../../supabase/functions/_documents/tokens.ts';

vi.mock('tokenx', async (load) => {
  const tokenx = await load<typeof import('tokenx')>();
  return { ...tokenx, estimateTokenCount: vi.fn(tokenx.estimateTokenCount) };
});
const asked = vi.mocked(estimateTokenCount);
beforeEach(() => asked.mockClear());

const size = 0.975 * MAX_SIZE;
const filledWith = (part: string) => part.repeat(size / part.length);
const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
/** Words of so many letters, of which hardly two are alike. */
const unlike = (length: number, end: string) =>
  Array.from({ length: size / (length + end.length) }, (_, n) => {
    const number = Math.imul(n + 1, 2654435761) >>> 0;
    return Array.from({ length }, (_, at) => letters[Math.floor(number / 62 ** at) % 62]).join('') + end;
  }).join('');

describe('780 kB of short words', () => {
  test.each([
    ['letters', filledWith('a b ')],
    ['capitals', filledWith('A B ')],
    ['digits', filledWith('1 2 ')],
    ['symbols', filledWith('- + ')],
    ['sentences of a word', filledWith('a. ')],
    ['words parted by nothing', filledWith('a,')],
    ['lines', filledWith('a\n')],
    ['paragraphs', filledWith('a\n\n')],
    ['headings', filledWith('# a\nb\n')],
    ['apostrophes', filledWith("a' ")],
    ['words of three letters, all different', unlike(3, ' ')],
    ['words of four letters, all different', unlike(4, ' ')],
  ])('ask the estimate about few of them: %s', (_, text) => {
    splitText('0b5f1f52-6f3b-4a5c-9d6e-2f1f0f3c7a11', text);
    expect(asked.mock.calls.length).toBeLessThan(1000);
  });

  test('ask it once about each where they are long enough to differ', () => {
    const text = unlike(6, '\n');
    splitText('0b5f1f52-6f3b-4a5c-9d6e-2f1f0f3c7a11', text);
    expect(asked.mock.calls.length).toBeLessThanOrEqual(1.1 * (size / 7));
  });
});

test('a word that the estimate is not asked about counts as by the estimate', () => {
  const character = fc.constantFrom(...'azAZ059.,!?;(){}[]<>:/\\|@#$%^&*+=`~_"-\'');
  const word = fc.tuple(
    fc.constantFrom('', ' ', '  ', '\t', '\n', '\n\n', '\r\n', '\n ', ' \n'),
    fc.string({ unit: character, minLength: 1, maxLength: 9 }).filter((core) => /^(?:[a-z\d]+|[^a-z\d]+)$/i.test(core)),
  );
  fc.assert(
    fc.property(word, ([blanks, core]) => {
      expect(countTokens(blanks + core)).toBe(Math.max(1, estimateTokenCount(blanks + core, slow)));
    }),
    { numRuns: 5000 },
  );
});

/** The count that tokens.ts asks by, of ASCII. */
const slow = {
  languageConfigs: [{ pattern: /^(?=.*\d)(?=.*[a-z])[\da-z]{8,}$/i, averageCharsPerToken: 1.5 }],
  defaultCharsPerToken: 5,
};
