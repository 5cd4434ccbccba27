import { describe, expect, test } from 'vitest';
import { readArticles } from '../../local/demo/samples/news/read-articles.ts';
import { topics } from '../../local/demo/samples/news/seeds.ts';
import { embedText, usualDimensions } from '../../local/services/model/embed-text.ts';
import { cosineSimilarity } from '../../supabase/functions/_millrace/model/embeddings.ts';

describe('the sample articles', async () => {
  const wanted = topics.map(({ name, description }) => embedText(`${name}\n${description}`, usualDimensions));
  const articles = await readArticles();

  test.each(articles)(
    'are told apart by the local model at the threshold of the stack: $title',
    ({ title, paragraphs, section }) => {
      const own = embedText([title, ...paragraphs].join('\n\n'), usualDimensions);
      const score = Math.max(...wanted.map((topic) => cosineSimilarity(own, topic)));
      expect(score > 0.05).toBe(section !== 'other');
    },
  );
});

test('vectors of different models are not compared', () => {
  expect(() => cosineSimilarity([1, 0], [1])).toThrow('vectors of 2 and 1 numbers');
  expect(cosineSimilarity([0, 0], [1, 0])).toBe(0);
});
