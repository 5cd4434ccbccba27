import type { BlendResult, LabelResult } from '../_pipelines/pages-results.ts';
import { normalForm } from '../_services/text/normal-form.ts';

/** A page's text without running heads and page number. */
export interface PageParts {
  body: string[];
  footnotes: string[];
}

/** Divides the lines of a page by its labels. It ignores a label that does not stand on the page. */
export function partsOf({ lines }: Pick<BlendResult, 'lines'>, label: LabelResult | null): PageParts {
  const texts = lines.map(({ text }) => text);
  const isFurniture = (text: string, index: number) => {
    const atEdge = index < 2 || index >= texts.length - 2;
    return atEdge && (isPart(text, label?.running_head) || isPart(text, label?.page_label));
  };
  const kept = texts.filter((text, index) => !isFurniture(text, index));
  const first = label?.first_footnote ? kept.findIndex((text) => beginsAlike(text, label.first_footnote ?? '')) : -1;
  return first < 0 ? { body: kept, footnotes: [] } : { body: kept.slice(0, first), footnotes: kept.slice(first) };
}

/** Where a heading stands: the number of its first line and how many it takes. */
export interface HeadingPlace {
  line: number;
  count: number;
}

const mostHeadingLines = 4;

/** Finds headings among lines, each in up to four consecutive ones; null for a heading that is not there. */
export function headingFinder(lines: readonly string[]): (heading: string) => HeadingPlace | null {
  const texts = lines.map(comparable);
  const places = new Map<string, HeadingPlace>();
  for (let line = 0; line < texts.length; line++) {
    let joined = '';
    for (let count = 1; count <= mostHeadingLines && line + count <= texts.length; count++) {
      joined += texts[line + count - 1] ?? '';
      if (joined !== '' && !places.has(joined)) places.set(joined, { line, count });
    }
  }
  return (heading) => places.get(comparable(heading)) ?? null;
}

function isPart(text: string, part: string | null | undefined): boolean {
  if (!part) return false;
  // Running head and page number may share a line.
  return (
    sameText(text, part) ||
    (text.length <= part.length + 8 && comparable(text).includes(comparable(part)) && part.length > 3)
  );
}

/** Says whether one text begins with all of the other: a model that copies a line may copy one sentence of it. */
function beginsAlike(one: string, other: string): boolean {
  const [a, b] = [comparable(one), comparable(other)];
  return a !== '' && b !== '' && (a.startsWith(b) || b.startsWith(a)) && Math.min(a.length, b.length) >= 10;
}

function sameText(one: string, other: string): boolean {
  return comparable(one) === comparable(other);
}

function comparable(text: string): string {
  return normalForm(text, 'NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
}
