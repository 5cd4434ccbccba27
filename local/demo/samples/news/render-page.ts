import type { NewsArticle } from './read-articles.ts';

export const siteName = 'Bench & Bed';

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text as it stands in HTML and XML. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}

/** Returns an article's page; `canonical` is the address that it calls its own, where it names one. */
export function articlePage(article: NewsArticle, origin: string, canonical?: string): string {
  const { title, date, author, image, paragraphs } = article;
  const head = [
    canonical && `<link rel="canonical" href="${escapeMarkup(canonical)}">`,
    image && `<meta property="og:image" content="${origin}/images/${escapeMarkup(image)}">`,
    `<meta name="author" content="${escapeMarkup(author)}">`,
    `<meta property="article:published_time" content="${date}T06:00:00Z">`,
  ];
  const body = `<article><h1>${escapeMarkup(title)}</h1>
    <p class="byline">By <span rel="author">${escapeMarkup(author)}</span>, <time datetime="${date}">${date}</time></p>
    ${paragraphs.map((text) => `<p>${escapeMarkup(text)}</p>`).join('\n    ')}
    </article>`;
  return page(title, head, body);
}

/** Returns the start page, which names the feeds. */
export function startPage(articles: NewsArticle[]): string {
  const items = articles.map(({ slug, title }) => `<li><a href="/2026/${slug}">${escapeMarkup(title)}</a></li>`);
  const feeds = [
    '<link rel="alternate" type="application/rss+xml" title="All" href="/feed.xml">',
    '<link rel="alternate" type="application/atom+xml" title="Gardens" href="/atom.xml">',
  ];
  return page(siteName, feeds, `<h1>${escapeMarkup(siteName)}</h1><ul>${items.join('')}</ul>`);
}

/** Returns a page that has pictures and a script, and not a word to read. */
export function galleryPage(): string {
  return page('', [], '<script>show(1)</script><img src="/images/beans.jpg"><img src="/images/barrel.jpg">', false);
}

function page(title: string, head: (string | null | undefined)[], body: string, framed = true): string {
  const nav = '<nav><a href="/">Start</a> <a href="/feed.xml">Feed</a></nav>';
  const foot = '<footer>A sample site of the project’s own making.</footer>';
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>${escapeMarkup(title)}</title>
    ${head.filter(Boolean).join('\n    ')}
  </head>
  <body>
    ${framed ? nav : ''}
    ${body}
    ${framed ? foot : ''}
  </body>
</html>
`;
}
