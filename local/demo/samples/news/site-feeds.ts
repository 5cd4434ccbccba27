import { gzipSync } from 'node:zlib';
import { atomFeed, type FeedItem, feedItem, rdfFeed, rssFeed, sitemap, sitemapIndex } from './feeds.ts';
import type { NewsArticle } from './read-articles.ts';

/** The addresses of the site that work as sources. */
export const feedPaths = ['/feed.xml', '/atom.xml', '/rdf.xml', '/sitemap.xml'];

/** Articles that can be read under a second address: one says so, the other does not. */
export const printed = { slug: 'balcony-beans', path: '/print/balcony-beans' };
export const copied = { slug: 'repair-cafe-hundred', path: '/partner/repair-cafe-hundred' };
/** An article that no feed names. */
export const unlisted = 'clothes-swap-mending';
export const report = { path: '/reports/gardens-in-figures.pdf', title: 'Gardens in figures', date: '2026-08-05' };
const gone = { path: '/2026/gone', title: 'An article that is gone', date: '2026-05-01' };
const withdrawn = { path: '/2026/withdrawn', title: 'An article that was withdrawn', date: '2026-05-02' };
const gallery = { path: '/2026/gallery', title: 'Pictures of the month', date: '2026-07-31' };

/** A feed or sitemap, written for the address that the site is asked under. */
export interface SiteFeed {
  type: string;
  write(origin: string): string | Uint8Array<ArrayBuffer>;
}

/** Returns the site's feeds and sitemaps by their paths. Several name the same articles, as on real sites. */
export function siteFeeds(articles: NewsArticle[]): Record<string, SiteFeed> {
  const listed = articles.filter(({ slug }) => slug !== unlisted);
  const of = (section: NewsArticle['section']) => listed.filter((article) => article.section === section);
  const gardens = of('gardens').map((article) => feedItem(article));
  // Some links lead over a counter of clicks.
  const repair = of('repair').map((article, at) => feedItem(article, at % 3 === 0 ? `/go/${article.slug}` : undefined));
  const other = of('other').map((article) => feedItem(article));
  const again = (path: string, slug: string): FeedItem[] =>
    articles.filter((article) => article.slug === slug).map((article) => feedItem(article, path));
  const all: FeedItem[] = [...repair, ...other, gone];
  const atom = [...gardens.slice(0, 5), ...again(printed.path, printed.slug), gallery];
  const rdf = [...gardens.slice(4), withdrawn];
  const packed = (origin: string) =>
    new Uint8Array(
      gzipSync(
        sitemap([...of('repair').map((article) => feedItem(article)), ...again(copied.path, copied.slug)], origin),
      ),
    );
  return {
    '/feed.xml': { type: 'application/rss+xml', write: (origin) => rssFeed(all, origin) },
    '/atom.xml': { type: 'application/atom+xml', write: (origin) => atomFeed(atom, origin) },
    '/rdf.xml': { type: 'application/rdf+xml', write: (origin) => rdfFeed(rdf, origin) },
    // The index names itself, too, as some do.
    '/sitemap.xml': {
      type: 'application/xml',
      write: (origin) => sitemapIndex(['/sitemaps/gardens.xml', '/sitemaps/repair.xml.gz', '/sitemap.xml'], origin),
    },
    '/sitemaps/gardens.xml': { type: 'application/xml', write: (origin) => sitemap([...gardens, report], origin) },
    '/sitemaps/repair.xml.gz': { type: 'application/gzip', write: packed },
  };
}
