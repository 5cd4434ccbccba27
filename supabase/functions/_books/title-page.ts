import type { PageRow } from './page-rows.ts';

/** A title page's fields by its layout; null for a field that it does not show. */
export interface TitlePage {
  title: string | null;
  subtitle: string | null;
  author: string | null;
  publisher: string | null;
  year: string | null;
}

const mostPages = 6;
const publishing = /\b(press|publish(?:ers?|ing|ed)|books|verlag|editions?|éditions|editorial|editore|uitgeverij)\b/i;

/** Reads the title page among a book's first pages: the one with the fewest, largest lines. */
export function readTitlePage(pages: readonly PageRow[]): TitlePage {
  const first = pages.slice(0, mostPages).map(({ blend_result: page }) => page?.lines ?? []);
  const titlePage =
    first.find((lines) => lines.length >= 2 && lines.length <= 16) ?? first.find(({ length }) => length > 0) ?? [];
  const ranked = [...titlePage].sort((a, b) => (b.size ?? 0) - (a.size ?? 0));
  const title = ranked[0] ?? null;
  const others = titlePage.filter((line) => line !== title).map(({ text }) => text);
  const publisher = others.find((text) => publishing.test(text)) ?? null;
  const by = others.findIndex((text) => /^(?:by|von|par|por|di|door)\b/i.test(text));
  const rest = others.filter((text, index) => text !== publisher && index !== by && !/\d{4}/.test(text));
  const author = by >= 0 ? others[by]?.replace(/^\S+\s*/, '') || others[by + 1] : rest.at(-1);
  const imprint = first.flat().map(({ text }) => text);
  return {
    title: title?.text ?? null,
    subtitle: rest.find((text) => text !== author) ?? null,
    author: author ?? null,
    publisher,
    year: /\b(?:1[5-9]\d\d|20\d\d)\b/.exec(imprint.join('\n'))?.[0] ?? null,
  };
}
