import { keepPage, scrapedLink, scrapeSettings, submitPage } from '../_links/scrape-page.ts';
import { defineStage } from '../_millrace/mod.ts';
import { links } from '../_pipelines/links.ts';
import { linkScrapeResult } from '../_pipelines/links-results.ts';
import { scraper } from '../_services/scraper.ts';

export const scrapeJob = defineStage({
  pipeline: links,
  stage: 'scrape_job',
  input: scrapedLink,
  output: linkScrapeResult,
  handler: submitPage,
  services: [scraper],
  finish: keepPage,
  settings: [scraper.settings, scrapeSettings],
});
