// A whole stack for links: the real functions, the local scraper and model, and every word that a link showed.
import type { Row } from '../engine.ts';
import { recordWords } from '../examples/links.ts';
import { ProjectStack } from './project-stack.ts';

const patienceMs = 90_000;

/** A page that states its job as data. */
export const posting = {
  '@context': 'https://schema.org',
  '@type': 'JobPosting',
  title: 'Weaver',
  hiringOrganization: { '@type': 'Organization', name: 'Acme Looms GmbH', sameAs: 'https://looms.test/' },
  jobLocation: { '@type': 'Place', address: { addressLocality: 'Ulm', addressCountry: 'DE' } },
  description: '<p>Weave <b>cloth</b>.</p>',
  datePosted: '2026-11-01',
};
export const jobPage = `<html><head><title>Weaver</title>
  <script type="application/ld+json">${JSON.stringify(posting)}</script></head>
  <body><h1>Weaver</h1><p>Weave cloth.</p></body></html>`;
export const postPage = `<html lang="en"><head><title>Bea on LinkedIn: we are hiring</title><meta property="og:title"
  content="Bea on LinkedIn: we are hiring"></head><body><main><p>We are hiring a dyer for the works in Ulm. Apply by mail
  to the company Dyers of Ulm, which is looking for a dyer with experience.</p></main></body></html>`;

export class LinksStack extends ProjectStack {
  static async start(siteUrl: string, env: Record<string, string> = {}): Promise<LinksStack> {
    const started = new LinksStack(
      // By its name it is another board than by its address.
      await ProjectStack.launch({
        env: { SCRAPER_ALLOW_HOSTS: `${new URL(siteUrl).host},localhost:${new URL(siteUrl).port}`, ...env },
      }),
    );
    await started.takeClock();
    await recordWords((statement) => started.rows(statement));
    return started;
  }

  add(url: string): Promise<string> {
    return this.value('insert into public.linkedin_links (raw_url) values ($1) returning id', [url]);
  }

  /** Waits until a link shows a word; resolves to its row. */
  async reach(id: string, word: string): Promise<Row> {
    let row: Row = {};
    const told = async () => [
      row,
      ...(await this.rows('select * from millrace.attempts order by id desc limit 5')),
      ...this.lastWords('links-classify', 'links-scrape-job', 'links-stage-job', 'links-extract', 'millrace'),
    ];
    const read = async () => {
      [row = {}] = await this.rows('select * from public.linkedin_links where id = $1', [id]);
      if (row.status === 'dead' && word !== 'dead') throw new Error(`link ${id} is dead: ${row.last_error}`);
      return row.status === word;
    };
    await this.until(`link ${id} is ${word}`, read, patienceMs, told);
    return row;
  }

  async words(id: string): Promise<unknown[]> {
    const rows = await this.rows('select word from public.words where link_id = $1 order by id', [id]);
    return rows.map(({ word }) => word);
  }
}
