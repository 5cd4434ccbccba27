import type { LabelResult, PageLine } from '../_pipelines/pages-results.ts';
import { readContentsLine } from './contents-lines.ts';
import { readPrintedNumber } from './printed-number.ts';
import { numbersOf } from './titles.ts';

// Relative to the size of the body's letters, and to the usual distance between two lines.
const larger = 1.06;
// A reader of images takes a line's height for the size of its letters, and the height depends on which letters they are.
const largerOnImage = 1.3;
const smaller = 0.9;
const standsApart = 1.25;
const farApart = 1.5;
// Values that differ by less count as equal.
const near = 0.04;
const longestHeading = 90;
const longestHead = 80;

const chapterLine = /^(?:chapter|part|book)\s+(?:\d+|[ivxlc]+|\p{L}+)[.:]?$/iu;

interface Line extends PageLine {
  /** Distance from the line before, in usual distances; null on the first line or where it is unknown. */
  gap: number | null;
  /** Size of its letters, in sizes of the body's letters; null where it is unknown. */
  scale: number | null;
}

/**
 * Proposes labels for the lines of a page by layout alone: sizes of letters, distances, place and form of the lines.
 * A reader of the words judges the proposal.
 *
 * @param onImage whether the sizes come from a picture, and so are rough.
 */
export function proposeLabels(given: readonly PageLine[], onImage: boolean): LabelResult {
  const lines = measure(given);
  const furniture = new Set<Line>();
  const take = (line: Line | undefined) => line && furniture.add(line);

  const [top, bottom] = [lines[0], lowestOf(lines)];
  const numbered = [bottom, top].find((line) => line && lines.length > 1 && readPrintedNumber(line.text));
  take(numbered);
  let label = numbered?.text ?? null;

  const head = lines.find((line) => !furniture.has(line));
  const isHead = head !== undefined && head === lines.find((line) => line !== numbered) && isRunningHead(head, lines);
  let runningHead: string | null = null;
  if (isHead && lines.length > 2) {
    take(head);
    const parts = label === null ? partNumber(head.text) : null;
    runningHead = parts?.head ?? head.text;
    label ??= parts?.label ?? null;
  }

  const note = lines.findIndex((line, index) => !furniture.has(line) && isFirstNote(line, index, lines));
  const body = lines.filter((line, index) => !furniture.has(line) && (note < 0 || index < note));
  return {
    running_head: runningHead,
    page_label: label && trimLabel(label),
    headings: findHeadings(body, onImage),
    first_footnote: lines[note]?.text ?? null,
  };
}

/** Picks the last line; on a picture, whose lines may be read column by column, the lowest one. */
function lowestOf(lines: readonly Line[]): Line | undefined {
  return lines.reduce<Line | undefined>(
    (lowest, line) => ((line.y ?? 0) >= (lowest?.y ?? 0) ? line : lowest),
    undefined,
  );
}

/** Measures the lines' letters and distances by what is usual on the page. */
function measure(lines: readonly PageLine[]): Line[] {
  const bodySize = usual(
    lines.flatMap(({ text, size }) => (size === null ? [] : [{ value: size, weight: text.length }])),
  );
  const distances = lines.map(({ y }, index) => {
    const before = lines[index - 1]?.y ?? null;
    return y === null || before === null ? null : y - before;
  });
  const known = distances.filter((distance) => distance !== null && distance > 0) as number[];
  const usualDistance = usual(known.map((value) => ({ value, weight: 1 })));
  return lines.map((line, index) => ({
    ...line,
    gap: distances[index] == null || usualDistance === 0 ? null : (distances[index] as number) / usualDistance,
    scale: line.size === null || bodySize === 0 ? null : line.size / bodySize,
  }));
}

function isRunningHead(line: Line, lines: Line[]): boolean {
  if (line.text.length > longestHead || /[,;]$/.test(line.text) || chapterLine.test(line.text)) return false;
  const next = lines[lines.indexOf(line) + 1];
  if (!next || (line.scale ?? 1) > larger) return false;
  if (line.size === null) return /^\p{Ll}/u.test(next.text) && !/[.!?]$/.test(line.text);
  return (next.gap ?? 1) >= farApart && (next.scale ?? 1) <= larger * 1.2;
}

/** Reads a running head with the page number on the same line. */
function partNumber(text: string): { head: string; label: string } | null {
  const [, before, middle = '', after] =
    /^(?:(\d{1,4}|[ivxlc]+)\s+)?(.*?\p{L}.*?)(?:\s+(\d{1,4}|[ivxlc]+))?$/u.exec(text) ?? [];
  const label = before ?? after;
  return label && readPrintedNumber(label) ? { head: middle, label } : null;
}

function isFirstNote(line: Line, index: number, lines: Line[]): boolean {
  if (/^[⁰¹²³⁴-⁹]/u.test(line.text)) return index > lines.length / 3;
  const small = line.scale !== null && line.scale <= smaller && (line.gap ?? 0) >= farApart;
  return small && index > lines.length / 2 && /^[\d*†‡'’"]/.test(line.text) && !readPrintedNumber(line.text);
}

function findHeadings(lines: Line[], onImage: boolean): string[] {
  const headings: { text: string; last: Line; at: number }[] = [];
  let chapter = '';
  lines.forEach((line, index) => {
    if (chapterLine.test(line.text)) {
      chapter = line.text.replace(/[.:]$/, '');
      return;
    }
    if (isHeading(line, lines[index - 1], lines[index + 1], onImage)) {
      const before = headings.at(-1);
      // A section may begin with that of its first part, such as "5.4.1 Bells".
      const beginsAnew = (numbersOf(line.text)?.length ?? 0) > 1;
      const goesOn =
        !beginsAnew && before?.at === index - 1 && sameSize(before.last, line) && (line.gap ?? 1) < farApart;
      if (before && goesOn) Object.assign(before, { text: `${before.text} ${line.text}`, last: line, at: index });
      else headings.push({ text: chapter ? `${chapter} – ${line.text}` : line.text, last: line, at: index });
    }
    chapter = '';
  });
  return headings.map(({ text }) => text);
}

function isHeading(line: Line, before: Line | undefined, next: Line | undefined, onImage: boolean): boolean {
  const { text, scale, gap } = line;
  const shaped = /^["“‘(]?[\p{Lu}\p{N}]/u.test(text) && /\p{L}{2}/u.test(text) && !/[.,;:\-–]$/.test(text);
  if (!shaped || text.length > longestHeading || readContentsLine(text) || readPrintedNumber(text)) return false;
  if (scale !== null && scale >= (onImage ? largerOnImage : larger)) return true;
  if (scale !== null && !onImage) return false;
  // The form decides about the other lines: a heading is short, between the end of one sentence and the start of
  // another.
  const ended = !before || /[.!?:”"’)\d⁰¹²³⁴-⁹]$/u.test(before.text);
  const begins = next !== undefined && /^["“‘(]?[\p{Lu}\p{N}]/u.test(next.text) && next.text.length > text.length;
  const apart = onImage ? (gap ?? 0) >= standsApart : (gap ?? 1) >= 1;
  return ended && begins && apart && text.length <= 0.75 * next.text.length;
}

function sameSize(one: Line, other: Line): boolean {
  return one.scale !== null && other.scale !== null && Math.abs(one.scale - other.scale) < 0.1;
}

function trimLabel(text: string): string {
  return text.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '');
}

/** Finds the value that weighs most, counting near ones together; 0 where there are none. */
function usual(values: { value: number; weight: number }[]): number {
  const sorted = [...values].sort((a, b) => a.value - b.value);
  let best = { value: 0, weight: 0 };
  let [low, high, weight] = [0, 0, 0];
  for (const { value } of sorted) {
    while (high < sorted.length && (sorted[high]?.value ?? 0) <= value * (1 + near))
      weight += sorted[high++]?.weight ?? 0;
    while ((sorted[low]?.value ?? 0) < value * (1 - near)) weight -= sorted[low++]?.weight ?? 0;
    if (weight > best.weight) best = { value, weight };
  }
  return best.value;
}
