import { expect, test } from 'vitest';
import { hiddenSubjects, longSentences } from '../../tools/check/sentences.ts';

const words = (count: number) => ['A', ...Array(count - 1).fill('word')].join(' ');

test('a sentence of a document has at most thirty words, in paragraphs, lists and cells alike', () => {
  const long = words(31);
  expect(longSentences('docs/a.md', `Short.\n\n${words(30)}. ${words(30)}.\n`)).toEqual([]);
  for (const text of [`${long}.`, `- ${words(3)}.\n- ${long}.`, `| a | ${long} |\n| --- | --- |`]) {
    expect(longSentences('docs/a.md', text)).toEqual([expect.stringMatching(/^docs\/a\.md: 31 words: /)]);
  }
});

test('code counts as one word, and blocks of code are no sentences', () => {
  expect(longSentences('docs/a.md', `${words(29)} \`${words(9)}\`.\n\n\`\`\`sh\n${words(40)}\n\`\`\`\n`)).toEqual([]);
});

test.each([
  ['-- What a claim takes.', 1],
  ['select 1;\n-- The claim takes rows. One that is\n-- held stays.', 2],
  ['/** Whoever calls it. */', 1],
  ['-- One row a batch.', 1],
  ['-- on queued\n-- One whose run has ended stays.', 2],
  ['/**\n * A claim. Those are locked.\n */', 1],
])('a comment with a pronoun as its subject is found: %j', (text, line) => {
  expect(hiddenSubjects('engine/x.sql', text)).toEqual([
    expect.stringMatching(new RegExp(`^engine/x\\.sql:${line}: `)),
  ]);
});

test('a number, a sentence that goes on and code are no hidden subject', () => {
  const text = "-- One isolate has 2 s.\n-- Leaves all\n-- that is held.\nconst a = 'What is it?'; // What";
  expect(hiddenSubjects('x.ts', text)).toEqual([]);
});
