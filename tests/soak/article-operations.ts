// The actions that people do with articles: feeds, entries by hand, and the codes of a review.
import type http from 'node:http';
import type { Row } from '../support/engine.ts';
import { type Campaign, orThrow } from './campaign.ts';
import type { Choices } from './plan.ts';

export const articlePlays = {
  'add a feed': addFeed,
  'enter articles': enterArticles,
  'review articles': review,
  'edit articles': edit,
};

let entries = 0;

const serve = (type: string, body: string) => (_: unknown, response: http.ServerResponse) =>
  response.writeHead(200, { 'content-type': type }).end(body);

/** A text about boats that no other article has. */
const textOf = (number: number) =>
  `The lock gates of canal ${number} were replaced, and boats pass locks ${number} to ${number + 7} again. `.repeat(5);

async function addFeed({ chaos }: Campaign, choices: Choices): Promise<void> {
  const items = Array.from({ length: 2 + choices.below(3) }, () => {
    entries += 1;
    const title = `Gates of lock ${entries}`;
    const page = `<html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1><p>${textOf(entries)}</p></body></html>`;
    return `<item><link>${chaos.parts.site.add(serve('text/html', page))}</link></item>`;
  });
  const feed = `<rss version="2.0"><channel><title>Canal</title>${items.join('')}</channel></rss>`;
  const address = chaos.parts.site.add(serve('application/rss+xml', feed));
  await chaos.rows(`insert into public.source (address, every) values ($1, '31 days')`, [address]);
}

/** Some bring all along, some a text that is to be read first. */
async function enterArticles({ chaos, promised }: Campaign, choices: Choices): Promise<void> {
  const drawn = Array.from({ length: 5 + choices.below(6) }, (_, n) => {
    entries += 1;
    const given: Row = n % 3 > 0 ? { summary: `In short: lock ${entries}`, tags: ['locks'] } : {};
    const thumbnail_url = 'https://images.test/lock.jpg';
    return { entry_type: 'manual', title: `Lock ${entries}`, content: textOf(entries), thumbnail_url, ...given };
  });
  for (const article of drawn) {
    const written = orThrow(await chaos.project.rows.from('ingestion_queue').insert(article).select('id')) ?? [];
    for (const { id } of written) promised.add(`ingestion_queue ${id}`);
  }
}

async function review({ chaos }: Campaign, choices: Choices): Promise<void> {
  const [from, to] = choices.oneOf([
    [300, 310],
    [300, 310],
    [310, 330],
    [310, 330],
    [310, 540],
    [540, 300],
    [400, 300],
    [500, 110],
  ]) as [number, number];
  await chaos.rows(
    `with held as (select id from public.ingestion_queue where status_code = $1 order by id limit $3 for no key update)
     update public.ingestion_queue q set status_code = $2 from held h where q.id = h.id`,
    [from, to, 1 + choices.below(12)],
  );
}

async function edit({ chaos }: Campaign, choices: Choices): Promise<void> {
  const ids = await chaos.rows<{ id: string }>(
    'select id from public.ingestion_queue where status_code in (400, 410) order by created_at, id',
  );
  const found = choices.oneOf(ids);
  if (!found) return;
  await chaos.rows('update public.ingestion_queue set status_code = 320 where id = $1', [found.id]);
  await chaos.rows(`update public.ingestion_queue set title = title || '!', status_code = 410 where id = $1`, [
    found.id,
  ]);
}
