import { describe, expect, test } from 'vitest';
import { proposeFacts } from '../../supabase/functions/_documents/candidate-names.ts';
import { kgResult } from '../../supabase/functions/_pipelines/chunks-results.ts';

const names = (text: string) => proposeFacts(text).entities.map((entity) => entity.name);

describe('a proposal of names', () => {
  test('has runs of capitalised words, with what joins them', () => {
    expect(names('We met Ada O’Neill, Jan van der Berg and Smith & Sons of the Isle of Wight.')).toEqual([
      'Ada O’Neill',
      'Jan van der Berg',
      'Smith & Sons',
      'Isle of Wight',
    ]);
  });

  test('leaves out what only begins a sentence, dates, and headings', () => {
    const text = '# The Great Title\n\nAfter lunch it rained. Clay was dug. In March, on a Monday, the clay dried.';
    expect(names(text)).toEqual([]);
    expect(names('The Tower stands. Tower Hill is near.')).toEqual(['Tower', 'Tower Hill']);
  });

  test('takes the names of any script that has capitals, and none of others', () => {
    expect(names('Мы знаем: Анна Павлова видела Эрмитаж.')).toEqual(['Анна Павлова', 'Эрмитаж']);
    expect(names('東京は日本の首都です。')).toEqual([]);
  });

  test('has the most frequent names where there are many', () => {
    const text = `${Array.from({ length: 40 }, (_, n) => `It saw Name${n} once.`).join(' ')} It saw Zed. It saw Zed.`;
    expect(names(text)).toHaveLength(15);
    expect(names(text)[0]).toBe('Zed');
  });
});

test('a proposal of relations has what stands between two names, where it may be a verb', () => {
  const text =
    'In spring Ada founded Brook Ltd. We saw Ada, Bob and Cy. Later Bob sold the mill by the river that nobody else wanted to Cy.';
  expect(proposeFacts(text).relations).toEqual([
    { source: 'Ada', relation: 'founded', target: 'Brook Ltd', fact: 'In spring Ada founded Brook Ltd.' },
  ]);
});

test('a proposal has the form of the answer, also for malformed and long text', () => {
  const malformed = [
    '',
    '|'.repeat(5000),
    'A '.repeat(2000),
    `${'B'.repeat(400)} sees C`,
    'É\n'.repeat(300),
    `Ada met ${'Bo '.repeat(300)}`,
  ];
  for (const text of malformed) expect(kgResult.safeParse(proposeFacts(text)).error).toBeUndefined();
});
