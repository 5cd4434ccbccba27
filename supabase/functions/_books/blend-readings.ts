import { diffArrays } from 'diff';
import type { BlendResult, PageLine, Reading } from '../_pipelines/pages-results.ts';
import { textQuality } from '../_services/text/text-quality.ts';

/** How many words two readings may differ by. Beyond that they are different texts, and comparing them takes too long. */
const mostDifferences = 800;

/**
 * Makes one text of a page out of one reading or two. Of two, the one that looks more like text is followed line by line,
 * the first where both do; and a word that the other read otherwise is taken from it where it looks more like a word, or
 * stands elsewhere on the page as well.
 */
export function blendReadings(readings: readonly [Reading, ...Reading[]]): BlendResult {
  const given = readings.filter(({ lines }) => lines.length > 0);
  // Each reader means something else by its confidence, so this measures both alike.
  const quality = ({ lines }: Reading) => textQuality(textOf(lines).text);
  const [first = readings[0], second] = given.sort((a, b) => quality(b) - quality(a));
  if (!second) return { ...textOf(first.lines), confidence: first.confidence, readings: [first.by], replaced: 0 };
  const { words, replaced, agreed } = reconcile(wordsOf(first.lines), wordsOf(second.lines));
  const confidence = round(agreed + (1 - agreed) * first.confidence * 0.5);
  return { ...textOf(withWords(first.lines, words)), confidence, readings: [first.by, second.by], replaced };
}

/** Chooses a word for each of `ours`; also says how many came from `theirs`, and what share of words both readings agree on. */
function reconcile(ours: string[], theirs: string[]): { words: string[]; replaced: number; agreed: number } {
  const known = new Map<string, number>();
  for (const word of [...ours, ...theirs]) known.set(word, (known.get(word) ?? 0) + 1);
  const words: string[] = [];
  let replaced = 0;
  let agreed = 0;
  const changes = diffArrays(ours, theirs, { maxEditLength: mostDifferences });
  if (!changes) return { words: ours, replaced: 0, agreed: 0 };
  changes.forEach((change, index) => {
    const next = changes[index + 1];
    if (change.added) return;
    if (!change.removed) {
      for (const word of change.value) words.push(word);
      agreed += change.value.length;
      return;
    }
    const others = next?.added && next.value.length === change.value.length ? next.value : [];
    change.value.forEach((word, at) => {
      const other = others[at];
      const better = other !== undefined && standing(other, known) > standing(word, known);
      words.push(better ? other : word);
      if (better) replaced++;
    });
  });
  return { words, replaced, agreed: ours.length === 0 ? 0 : agreed / Math.max(ours.length, theirs.length) };
}

/** Rates how credible a word is: whether it looks like one, and how often both readings have it on the page. */
function standing(word: string, known: Map<string, number>): number {
  return textQuality(word) * 10 + Math.min(known.get(word) ?? 0, 9);
}

function wordsOf(lines: readonly PageLine[]): string[] {
  return lines.flatMap(({ text }) => text.split(' '));
}

function withWords(lines: readonly PageLine[], words: string[]): PageLine[] {
  let at = 0;
  return lines.map((line) => {
    const count = line.text.split(' ').length;
    at += count;
    return { ...line, text: words.slice(at - count, at).join(' ') };
  });
}

function textOf(lines: PageLine[]): Pick<BlendResult, 'text' | 'lines'> {
  return { text: lines.map(({ text }) => text).join('\n'), lines };
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
