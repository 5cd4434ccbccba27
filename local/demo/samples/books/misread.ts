// Text as a poor reader of images leaves it.
import { randomNumbers } from './random-numbers.ts';

const mistakes: [right: string, wrong: string][] = [
  ['rn', 'm'],
  ['m', 'rn'],
  ['cl', 'd'],
  ['h', 'b'],
  ['e', 'c'],
  ['l', '1'],
  ['i', 'l'],
  ['o', '0'],
  ['s', '5'],
];

/** Returns the text with a mistake in about one word of six; the same for the same `seed`. */
export function misread(text: string, seed: number): string {
  const random = randomNumbers(seed);
  const words = text.split(' ').map((word) => {
    if (random() > 1 / 6) return word;
    const possible = mistakes.filter(([right]) => word.includes(right));
    const [right, wrong] = possible[Math.floor(random() * possible.length)] ?? ['', ''];
    return word.replace(right, wrong);
  });
  return words.join(' ');
}
