import { excerpt, storableText } from '../_millrace/mod.ts';
import { tidyText } from '../_services/text/tidy-text.ts';

/** Remedy for an article whose address has no readable text. */
export const enterByHand = 'Delete the article, and insert it as "manual" with its url, title and content.';

/** A row is handed to each stage whole; nobody reads an article to its end that is longer. */
const longestContent = 200_000;
const longestTitle = 300;

/** A text as an article keeps it, cut at a paragraph where it is very long; empty where it has neither letters nor digits. */
export function articleContent(text: string): string {
  const tidy = tidyText(text.replaceAll('\f', '\n\n')).trim();
  if (!/[\p{L}\p{N}]/u.test(tidy)) return '';
  if (tidy.length <= longestContent) return tidy;
  const cut = excerpt(tidy, longestContent);
  const paragraph = cut.lastIndexOf('\n\n');
  return storableText(paragraph > longestContent / 2 ? cut.slice(0, paragraph) : cut).trimEnd();
}

/** A title in one line: what was said, else the text's first heading or line, else the end of the address. */
export function articleTitle(said: string, content: string, url: string): string {
  const heading = /^#{1,6} +(.+)$/m.exec(content)?.[1];
  const end = new URL(url).pathname.split('/').filter(Boolean).at(-1) ?? new URL(url).host;
  const titles = [said, heading ?? '', content.split('\n', 1)[0] ?? '', end].map((title) =>
    tidyText(title).replace(/\s+/g, ' ').trim(),
  );
  return excerpt(titles.find((title) => /[\p{L}\p{N}]/u.test(title)) ?? end, longestTitle);
}
