import type { NewsArticle } from './read-articles.ts';
import { escapeMarkup, siteName } from './render-page.ts';

/** An entry of a feed: an address on the site, with its title and date. */
export interface FeedItem {
  path: string;
  title: string;
  date: string;
}

/** Returns an article as feeds name it, under its own address unless another is given. */
export function feedItem({ slug, title, date }: NewsArticle, path = `/2026/${slug}`): FeedItem {
  return { path, title, date };
}

const declaration = '<?xml version="1.0" encoding="UTF-8"?>\n';

/** RSS 2, with what sites add to their links. */
export function rssFeed(items: FeedItem[], origin: string): string {
  const written = items.map(
    ({ path, title, date }) => `
    <item>
      <title>${escapeMarkup(title)}</title>
      <link>${origin}${path}?utm_source=feed&amp;utm_medium=rss</link>
      <guid isPermaLink="false">${date}${path}</guid>
      <pubDate>${new Date(date).toUTCString()}</pubDate>
    </item>`,
  );
  return `${declaration}<rss version="2.0"><channel>
    <title>${escapeMarkup(siteName)}</title>
    <link>${origin}/</link>
    <description>Growing and mending in town</description>${written.join('')}
</channel></rss>
`;
}

/** Atom, whose links are relative to the feed. */
export function atomFeed(items: FeedItem[], origin: string): string {
  const written = items.map(
    ({ path, title, date }) => `
  <entry>
    <title type="html">${escapeMarkup(escapeMarkup(title))}</title>
    <id>${origin}${path}</id>
    <link rel="replies" href="${path}/replies"/>
    <link rel="alternate" type="text/html" href="${path}"/>
    <published>${date}T06:00:00Z</published>
    <updated>${date}T08:00:00Z</updated>
  </entry>`,
  );
  return `${declaration}<feed xmlns="http://www.w3.org/2005/Atom" xml:base="${origin}/">
  <title>${escapeMarkup(siteName)}: gardens</title>
  <id>${origin}/atom.xml</id>
  <link rel="self" href="/atom.xml"/>
  <updated>${items[0]?.date ?? '2026-01-01'}T08:00:00Z</updated>${written.join('')}
</feed>
`;
}

/** RDF, as RSS 1.0 is written. */
export function rdfFeed(items: FeedItem[], origin: string): string {
  const places = items.map(({ path }) => `<rdf:li rdf:resource="${origin}${path}"/>`);
  const written = items.map(
    ({ path, title, date }) => `
  <item rdf:about="${origin}${path}">
    <title>${escapeMarkup(title)}</title>
    <link>${origin}${path}</link>
    <dc:date>${date}</dc:date>
  </item>`,
  );
  return `${declaration}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
  <channel rdf:about="${origin}/rdf.xml">
    <title>${escapeMarkup(siteName)}</title>
    <link>${origin}/</link>
    <items><rdf:Seq>${places.join('')}</rdf:Seq></items>
  </channel>${written.join('')}
</rdf:RDF>
`;
}

/** Returns a sitemap. */
export function sitemap(items: FeedItem[], origin: string): string {
  const written = items.map(({ path, date }) => `  <url><loc>${origin}${path}</loc><lastmod>${date}</lastmod></url>`);
  return `${declaration}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${written.join('\n')}\n</urlset>\n`;
}

/** Returns an index of sitemaps. */
export function sitemapIndex(paths: string[], origin: string): string {
  const written = paths.map((path) => `  <sitemap><loc>${origin}${path}</loc></sitemap>`);
  return `${declaration}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${written.join('\n')}\n</sitemapindex>\n`;
}
