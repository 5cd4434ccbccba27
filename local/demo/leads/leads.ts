import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Sites } from '../samples/sites/server.ts';

export interface Lead {
  email: string;
  url: string;
  /** Whether the pipeline must bring it to the end; two samples are broken on purpose. */
  shouldSucceed: boolean;
}

/** The one statement that starts everything. */
export const startStatement = "update leads set scrape_status = 'queued';";

/** One lead for each sample site, and two that cannot work: a host that does not exist and a missing page. */
export function sampleLeads(sites: Sites): Lead[] {
  const companies = sites.hosts.map(({ name, url }) => ({
    email: `office@${name}.example`,
    url: `${url}/`,
    shouldSucceed: true,
  }));
  return [
    ...companies,
    { email: 'office@unknown-host.example', url: 'https://no-such-company.invalid/', shouldSucceed: false },
    { email: 'office@missing-page.example', url: `${sites.url}/faults/404`, shouldSucceed: false },
  ];
}

/** Leads for web sites that the user named. */
export function leadsFor(urls: URL[]): Lead[] {
  return urls.map((url) => ({ email: `office@${url.hostname}`, url: url.href, shouldSucceed: true }));
}

/** Returns the value of SCRAPER_ALLOW_HOSTS that lets the scraper read these pages, with what was allowed before. */
export function allowHosts(urls: string[], before: string | undefined): string {
  const hosts = urls.map((text) => new URL(text)).map((url) => `${url.hostname}:${url.port || defaultPort(url)}`);
  return [...new Set([before ?? '', ...hosts])].filter(Boolean).join(',');
}

function defaultPort(url: URL): string {
  return url.protocol === 'https:' ? '443' : '80';
}

/** Inserts the leads, all of one account. */
export async function insertLeads(client: pg.Client, leads: Lead[], account = randomUUID()): Promise<void> {
  await client.query(
    `insert into public.leads (email, company_url, account_id)
     select l.email, l.url, $2 from jsonb_to_recordset($1) as l(email text, url text)`,
    [JSON.stringify(leads), account],
  );
}
