// npm run screenshots: pictures of the operator's page with the data of the leads demo, light and dark, into docs/pictures.
// README and the pages show some of them, which git keeps; the rest is for whoever looks.
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Browser } from 'playwright-core';
import { allowHosts, insertLeads, sampleLeads, startStatement } from '../../local/demo/leads/leads.ts';
import { startSites } from '../../local/demo/samples/sites/server.ts';
import { demoSettings } from '../../local/demo/settings.ts';
import { readSettings } from '../../local/platform/settings.ts';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { startServices } from '../../local/services/start-services.ts';
import { launchChromium } from '../support/stack/chromium.ts';
import { until } from '../support/until.ts';

const folder = path.join(import.meta.dirname, '..', '..', 'docs', 'pictures');
const patienceMs = 180_000;

/** Works off the demo's leads several times over, and does what an operator might. */
async function fill(stack: Stack, leads: Parameters<typeof insertLeads>[1]): Promise<void> {
  const client = new pg.Client({ connectionString: stack.dbUrl });
  await client.connect();
  try {
    const running = async () => {
      const { rows } = await client.query(`select count(*)::int as n from millrace.runs where status = 'running'`);
      return rows[0].n as number;
    };
    for (let round = 0; round < 3; round += 1) {
      await insertLeads(client, leads);
      await client.query(startStatement.replace(';', ` where scrape_status = 'pending'`));
      await until(async () => (await running()) <= leads.length / 3, patienceMs, 500);
      // The figures go by the minute.
      await delay(20_000);
    }
    await insertLeads(client, leads);
    await client.query(startStatement.replace(';', ` where scrape_status = 'pending'`));
    await client.query(`select millrace.throttle_limit('scrapes', '{"rate": {"count": 30, "per_seconds": 60}}',
      millrace.now() + interval '1 hour', 'a host asks for patience')`);
    await client.query(`insert into millrace.operators (subject, role, note) values ('otto', 'operator', 'on call'),
      ('vera', 'viewer', 'sales') on conflict do nothing`);
    await client.query('select millrace.sweep()');
    await until(async () => {
      const { rows } = await client.query(
        'select exists (select from millrace.alerts where resolved_at is null) as is',
      );
      return rows[0].is as boolean;
    }, patienceMs);
  } finally {
    await client.end();
  }
}

/** The screens, and where each is; the run is the newest that is completed. */
const screens = (run: number): [name: string, address: string][] => [
  ['overview', '#/'],
  ['pipeline', '#/pipeline/leads?stage=intel'],
  ['runs', '#/runs?pipeline=leads'],
  ['dead', '#/dead'],
  ['run', `#/run/${run}`],
  ['status', '#/status/links?value=new'],
  ['limits', '#/limits'],
  ['alerts', '#/alerts?show=all'],
  ['journal', '#/journal'],
  ['settings', '#/settings'],
];

async function shoot(browser: Browser, stack: Stack, run: number, theme: 'light' | 'dark'): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: theme });
  const page = await context.newPage();
  await page.goto(stack.operateLink());
  await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor();
  for (const [name, address] of screens(run)) {
    await page.goto(`${stack.apiUrl}/operate/${address}`);
    await page.waitForLoadState('networkidle');
    // A chart is drawn after its figures have come.
    await page.waitForTimeout(1000);
    await page.screenshot({ path: path.join(folder, `${name}-${theme}.png`) });
    console.log(`docs/pictures/${name}-${theme}.png`);
  }
  await context.close();
}

const settings = demoSettings(readSettings());
const sites = await startSites();
const leads = sampleLeads(sites);
settings.env.SCRAPER_ALLOW_HOSTS = allowHosts(
  leads.map(({ url }) => url),
  settings.env.SCRAPER_ALLOW_HOSTS,
);
fs.mkdirSync(folder, { recursive: true });
const browser = await launchChromium();
const stack = await startStack({ env: settings.env, services: startServices, fsync: false });
try {
  await fill(stack, leads);
  const client = new pg.Client({ connectionString: stack.dbUrl });
  await client.connect();
  const { rows } = await client.query(`select max(id)::int as run from millrace.runs where status = 'completed'`);
  await client.end();
  for (const theme of ['light', 'dark'] as const) await shoot(browser, stack, rows[0].run, theme);
} finally {
  await browser.close();
  await stack.stop();
  await sites.stop();
}
process.exit();
