// The actions that people do with links: pages on two boards, and the words that the playbooks write.
import { jobPage } from '../support/stack/links-stack.ts';
import { type Campaign, orThrow } from './campaign.ts';
import type { Choices } from './plan.ts';

export const linkPlays = { 'insert links': insertLinks, 'write words of links': writeWords };

let pages = 0;

async function insertLinks(campaign: Campaign, choices: Choices): Promise<void> {
  const { chaos } = campaign;
  const links = Array.from({ length: 6 + choices.below(8) }, (_, n) => {
    pages += 1;
    const url = chaos.parts.site.add(
      (_, response) => response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(jobPage),
      `/jobs/${pages}`,
    );
    return { raw_url: n % 3 === 0 ? url.replace('127.0.0.1', 'localhost') : url };
  });
  const written = orThrow(await chaos.project.rows.from('linkedin_links').insert(links).select('id')) ?? [];
  for (const { id } of written) campaign.promised.add(`linkedin_links ${id}`);
}

/** As the playbooks have it: by the word that links show, and the next one for some of them. */
const statements = [
  `update public.linkedin_links set next_attempt_at = millrace.now() where status = 'error'`,
  `update public.linkedin_links set status = 'queued' where status = 'scraping' and id % 4 = $1`,
  `update public.linkedin_links set status = 'queued', note = '{"why": "it is back"}' where status = 'dead' and id % 4 = $1`,
  `update public.linkedin_links set status = 'queued' where status = 'extracted' and id % 4 = $1`,
  `update public.linkedin_links set status = 'scraped' where status = 'staged' and id % 4 = $1`,
];

async function writeWords({ chaos }: Campaign, choices: Choices): Promise<void> {
  const statement = choices.oneOf(statements) as string;
  await chaos.rows(statement, statement.includes('$1') ? [choices.below(4)] : []);
}
