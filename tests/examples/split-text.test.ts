import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CHUNK_TOKENS, OVERLAP_TOKENS } from '../../supabase/functions/_documents/chunk-places.ts';
import { sectionsOf } from '../../supabase/functions/_documents/sections.ts';
import { MAX_SIZE, splitText } from '../../supabase/functions/_documents/split-text.ts';
import { countTokens, tokenPieces } from '../../supabase/functions/_documents/tokens.ts';
import { huntLength } from '../support/hunt-length.ts';

const documentId = '0b5f1f52-6f3b-4a5c-9d6e-2f1f0f3c7a11';
const sentence = (n: number) => `Sentence number ${n} speaks of clocks, of weights and of the people who wind them. `;
const prose = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => sentence(from + index))
    .join('')
    .trim();

/** Text with what makes trouble: headings, fences, pages, blanks, words without end, characters of several tokens. */
const troublesome = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 200 }),
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.lorem({ maxCount: 80 }),
      fc.constantFrom(
        '\n',
        '\n\n',
        '\f',
        '# A\n',
        '\n## B\n',
        '#### deep\n',
        '```\n',
        'Title\n===\n',
        ' '.repeat(300),
        '\r\n',
      ),
      fc.integer({ min: 1, max: 400 }).map((times) => '漢字かな交じり文。'.repeat(times % 60)),
      fc.integer({ min: 1, max: 3000 }).map((times) => 'x'.repeat(times)),
      fc.integer({ min: 1, max: 300 }).map((times) => '🪿👩‍👩‍👧'.repeat(times)),
    ),
    { maxLength: 25 },
  )
  .map((parts) => parts.join('').replace(/\p{Surrogate}/gu, '?'));

describe('chunks', () => {
  test('lie where they say, in order, and between them hold all of the text but blanks', () => {
    fc.assert(
      fc.property(troublesome, (text) => {
        fc.pre(text.trim() !== '');
        const chunks = splitText(documentId, text);
        let covered = 0;
        for (const [index, chunk] of chunks.entries()) {
          expect(chunk.ordinal).toBe(index + 1);
          expect(text.slice(chunk.start_offset, chunk.end_offset)).toBe(chunk.text);
          expect(chunk.text).toBe(chunk.text.trim());
          expect(chunk.text).not.toMatch(/\p{Surrogate}/u);
          expect(chunk.end_offset).toBeGreaterThan(covered);
          expect(text.slice(covered, Math.max(covered, chunk.start_offset)).trim()).toBe('');
          covered = chunk.end_offset;
        }
        expect(text.slice(covered).trim()).toBe('');
        expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(chunks.length);
        expect(splitText(documentId, text)).toEqual(chunks);
      }),
      { numRuns: huntLength(50, 3000) },
    );
  });

  test('hold about as many tokens as they should, and begin with the end of the one before', () => {
    const chunks = splitText(documentId, prose(0, 200));
    expect(chunks.length).toBeGreaterThan(5);
    for (const [index, chunk] of chunks.entries()) {
      expect(chunk.tokens).toBe(countTokens(chunk.text));
      expect(chunk.tokens).toBeLessThanOrEqual(CHUNK_TOKENS + 10);
      const before = chunks[index - 1];
      if (!before) continue;
      const shared = countTokens(before.text.slice(chunk.start_offset - before.start_offset));
      expect(Math.abs(shared - OVERLAP_TOKENS)).toBeLessThan(5);
    }
    // All but the last are full, and end where a sentence does.
    for (const chunk of chunks.slice(0, -1)) {
      expect(chunk.tokens).toBeGreaterThan(CHUNK_TOKENS * 0.75);
      expect(chunk.text).toMatch(/\.$/);
    }
  });

  test('do not cross a heading of level 1 to 3 where they are large, and know the headings they stand under', () => {
    const text = `# Book\n\n## One\n\n${prose(0, 14)}\n\n### Deeper\n\n${prose(14, 28)}\n\n#### Deepest\n\n${prose(28, 32)}\n\n## Two\n\n${prose(32, 46)}`;
    const chunks = splitText(documentId, text);
    expect(chunks.map((chunk) => chunk.heading)).toEqual(['Book > One', 'Book > One > Deeper', 'Book > Two']);
    expect(chunks[0]?.text).toMatch(/^# Book/);
    expect(chunks[1]?.text).toMatch(/^### Deeper/);
    expect(chunks[2]?.text).toMatch(/^## Two/);
  });

  test('take tiny sections together, under the headings they share', () => {
    const text = '# Terms\n\n## Anchor\n\nIt rocks.\n\n## Balance\n\nIt swings.\n\n## Click\n\nIt holds.';
    expect(splitText(documentId, text)).toMatchObject([{ text, heading: 'Terms', ordinal: 1 }]);
  });

  test('have no heading and no page where the text has none', () => {
    expect(splitText(documentId, prose(0, 3))).toMatchObject([{ heading: null, page: null, start_offset: 0 }]);
  });

  test('know the page they begin on', () => {
    const text = [prose(0, 30), '', prose(30, 60), 'The end.'].join('\f');
    for (const chunk of splitText(documentId, text)) {
      expect(chunk.page).toBe(text.slice(0, chunk.start_offset).split('\f').length);
    }
    expect(new Set(splitText(documentId, text).map((chunk) => chunk.page))).toEqual(new Set([1, 3]));
  });

  describe('of a changelog, with many small sections,', () => {
    const release = (n: number) =>
      `## 1.${n}.0\n\n- ${sentence(n)}\n- ${sentence(n + 500)}\n\n### Fixed\n\n- ${sentence(n + 900)}\n\n`;
    const changelog = (to: number) =>
      `# Changes\n\n${Array.from({ length: to }, (_, at) => release(to - at)).join('')}`;

    test('are nearly as large as they should be', () => {
      const text = changelog(200);
      const chunks = splitText(documentId, text);
      expect(chunks.length).toBeLessThan((1.7 * countTokens(text)) / CHUNK_TOKENS);
      for (const { tokens } of chunks) expect(tokens).toBeLessThanOrEqual(CHUNK_TOKENS + 10);
      // Cut where a section begins.
      for (const { text: chunk } of chunks) expect(chunk).toMatch(/^#/);
    });

    test('mostly keep their ids when a release is added at the top', () => {
      const before = splitText(documentId, changelog(200)).map(({ id }) => id);
      const after = new Set(splitText(documentId, changelog(201)).map(({ id }) => id));
      expect(before.filter((id) => !after.has(id)).length).toBeLessThan(before.length / 4);
    });
  });

  test('keep their ids when another section is edited, and have others in another document', () => {
    const book = Array.from({ length: 12 }, (_, n) => `## Chapter ${n}\n\n${prose(n * 30, n * 30 + 30)}`).join('\n\n');
    const edited = book.replace(sentence(125), `${sentence(125)}A new one. `);
    expect(edited).not.toBe(book);
    const before = splitText(documentId, book).map((chunk) => chunk.id);
    const after = splitText(documentId, edited).map((chunk) => chunk.id);
    expect(before.length).toBeGreaterThan(10);
    const lost = before.filter((id) => !after.includes(id));
    expect(lost.length).toBeGreaterThan(0);
    expect(lost.length).toBeLessThanOrEqual(before.length / 12);
    const elsewhere = splitText(documentId.replace('0b', '0c'), book).map((chunk) => chunk.id);
    expect(elsewhere.filter((id) => before.includes(id))).toEqual([]);
    for (const id of before)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('that say the same have ids of their own', () => {
    const section = `## Note\n\n${prose(0, 10)}\n\n`;
    const chunks = splitText(documentId, section.repeat(3));
    expect(new Set(chunks.map((chunk) => chunk.text)).size).toBe(1);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(3);
  });

  test('hold no gap of blanks', () => {
    expect(splitText(documentId, `one${' '.repeat(100_000)}two`).map((chunk) => chunk.text)).toEqual(['one', 'two']);
  });
});

describe('a text that cannot be cut', () => {
  test('is named with the limit when it is too large', () => {
    const tooLarge = {
      code: 'text_too_long',
      permanent: true,
      message: expect.stringMatching(/about 801 KB, .*at most 800 KB/),
    };
    expect(() => splitText(documentId, 'a '.repeat(MAX_SIZE / 2 + 1))).toThrow(expect.objectContaining(tooLarge));
    expect(() => splitText(documentId, '文'.repeat(MAX_SIZE / 6 + 1))).toThrow(expect.objectContaining(tooLarge));
  });

  test('is named when it is blank', () => {
    expect(() => splitText(documentId, ' \n\f ')).toThrow(
      expect.objectContaining({ code: 'no_text', permanent: true }),
    );
  });
});

describe('sections', () => {
  const pathsOf = (text: string) => sectionsOf(text).map((section) => section.path.join(' > '));

  test('begin at headings of both forms, and not within code', () => {
    const text =
      'Before.\n\nOne\n===\n\n```sh\n# no heading\n```\n\nTwo\n---\ntext\n\n#no heading\n\n# *Three* [b](c) `d` #\n';
    expect(pathsOf(text)).toEqual(['', 'One', 'One > Two', '*Three* b d']);
  });

  test('are none under rules, tables and lists', () => {
    expect(pathsOf('text\n\n---\n\n| a |\n---\n\n- item\n---\n\ntwo\nlines\n---\n')).toEqual(['']);
  });

  test('leave nothing out', () => {
    fc.assert(
      fc.property(troublesome, (text) => {
        const sections = sectionsOf(text);
        expect(sections.map(({ start, end }) => text.slice(start, end)).join('')).toBe(text);
      }),
    );
  });
});

describe('tokens', () => {
  test('are pieces that make up the text, none of them half of a character', () => {
    fc.assert(
      fc.property(troublesome, (text) => {
        const pieces = tokenPieces(text);
        expect(pieces.map((piece) => piece.text).join('')).toBe(text);
        expect(pieces.length).toBeLessThanOrEqual(countTokens(text));
        for (const piece of pieces) expect(piece.text).not.toMatch(/\p{Surrogate}/u);
      }),
    );
  });

  test('of a model’s own control are text like any other', () => {
    expect(countTokens('<|endoftext|>')).toBeGreaterThan(1);
  });
});
