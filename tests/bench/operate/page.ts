// The operator's page in a real Chromium over a large project: how soon it shows figures, how long it holds up the window
// while it polls, and what an open page costs the database.
import fs from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Browser, Page } from 'playwright-core';
import type { Stack } from '../../../local/platform/stack.ts';
import { launchChromium } from '../../support/stack/chromium.ts';
import { onAStack } from '../on-a-stack.ts';
import { type Result, round } from '../results.ts';
import { fill, type Size } from './fill.ts';

/** Polls are five seconds apart at first, and up to thirty where nothing changes. */
const watchedMs = 40_000;
/** `/proc/PID/schedstat` counts nanoseconds. */
const nanosecondsPerMs = 1e6;
const lookMs = 500;
const largePipeline = 'bench_11';

/** Each screen, and what is on it once its figures are there. */
const screens = (run: number): [name: string, address: string, shown: string][] => [
  ['overview, 1,000 stages', '#/', '.card .counts'],
  ['pipeline with a graph of 60', `#/pipeline/${largePipeline}`, '.graph .node'],
  ['run with 10,000 children', `#/run/${run}`, '.graph .node'],
  ['runs', '#/runs?status=failed', 'td'],
  ['dead letters', '#/dead', 'td'],
];

/** For each screen: milliseconds from the load to its first figures, the longest task while it polls, and the database's CPU. */
export async function measurePage(size: Size, variant: string, progress: (message: string) => void): Promise<Result[]> {
  const browser = await launchChromium();
  try {
    return await onAStack({ services: false }, async (stack, client) => {
      const empty = await measureScreen(browser, stack, client, ['no pipeline', '#/', '.engine']);
      progress(`operate page: writing ${variant}`);
      await fill(client, size);
      const results = [empty];
      for (const screen of screens(await addChildren(client))) {
        results.push(await measureScreen(browser, stack, client, screen));
      }
      return results.flatMap(({ name, ...values }) => asResults(`operate page: ${name}`, variant, values));
    });
  } finally {
    await browser.close();
  }
}

interface Measured {
  name: string;
  firstMs: number;
  longestMs: number;
  databaseShare: number;
}

async function measureScreen(
  browser: Browser,
  stack: Stack,
  client: pg.Client,
  [name, address, shown]: [string, string, string],
): Promise<Measured> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  try {
    await page.addInitScript(watchTasks);
    // The first visit exchanges the link for a cookie; the second is the one that is measured.
    await page.goto(stack.operateLink());
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor();
    await page.goto('about:blank');
    await page.goto(`${stack.apiUrl}/operate/${address}`);
    const firstMs = await millisecondsUntil(page, shown);
    await page.waitForLoadState('networkidle');
    await page.evaluate(() => longTasks.splice(0));
    const databaseShare = (100 * (await databaseCpu(client, watchedMs))) / watchedMs;
    const longestMs = await page.evaluate(() => Math.max(0, ...longTasks));
    return { name, firstMs, longestMs, databaseShare };
  } finally {
    await context.close();
  }
}

declare const longTasks: number[];

/** Runs in the page before its own script. */
function watchTasks(): void {
  const list: number[] = [];
  Object.assign(globalThis, { longTasks: list });
  new PerformanceObserver((entries) => {
    for (const { duration } of entries.getEntries()) list.push(duration);
  }).observe({ type: 'longtask', buffered: true });
}

/** From the end of the page's load, as the browser tells it. */
async function millisecondsUntil(page: Page, selector: string): Promise<number> {
  const shown = await page.waitForFunction(
    (sought) => document.querySelector(sought) !== null && performance.now(),
    selector,
    { polling: 'raf' },
  );
  const loaded = await page.evaluate(() => performance.getEntriesByType('navigation')[0]?.toJSON().loadEventEnd);
  return Number(await shown.jsonValue()) - loaded;
}

/** CPU in milliseconds of the sessions that PostgREST has in a while: nobody but the page asks it anything. */
async function databaseCpu(client: pg.Client, forMs: number): Promise<number> {
  const first = new Map(await sessions(client));
  const last = new Map(first);
  // PostgREST closes sessions that idle and opens others, so each is looked at as long as it lives.
  for (let ms = 0; ms < forMs; ms += lookMs) {
    await delay(lookMs);
    for (const [pid, spent] of await sessions(client)) last.set(pid, spent);
  }
  return [...last].reduce((sum, [pid, spent]) => sum + spent - (first.get(pid) ?? 0), 0) / nanosecondsPerMs;
}

/** The sessions of PostgREST, and the CPU that each has had. */
async function sessions(client: pg.Client): Promise<[pid: number, spent: number][]> {
  const { rows } = await client.query<{ pid: number }>(
    `select pid from pg_stat_activity where usename = 'authenticator'`,
  );
  return rows.flatMap(({ pid }) => {
    const file = `/proc/${pid}/schedstat`;
    return fs.existsSync(file) ? [[pid, Number(fs.readFileSync(file, 'utf8').split(' ')[0])]] : [];
  });
}

/** Gives a run ten thousand children of the large pipeline; returns its id. */
async function addChildren(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ run: number }>(
    `with fan_out as (
      insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id, state, spawned, total, completed,
        failed, created_at)
      select a.run_id, a.stage_id, a.id, p.id, 'closed', 10000, 10000, 9000, 1000, millrace.now()
      from millrace.attempts a, millrace.pipelines p
      where a.state = 'completed' and p.name = $1
      order by a.id limit 1
      returning id, run_id, child_pipeline_id),
    children as (
      insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at, fan_out_id, item_key)
      select p.id, p.current_version_id, n::text, 'completed', millrace.now(), millrace.now(), f.id, n::text
      from fan_out f join millrace.pipelines p on p.id = f.child_pipeline_id, generate_series(1, 10000) n)
    select run_id::int as run from fan_out`,
    [largePipeline],
  );
  return (rows[0] as { run: number }).run;
}

function asResults(work: string, variant: string, { firstMs, longestMs, databaseShare }: Omit<Measured, 'name'>) {
  const result = (what: string, value: number, unit: string): Result => {
    return { work: `${work}, ${what}`, engine: 'millrace', variant, value: round(value), unit };
  };
  return [
    result('first figures after the load', firstMs, 'ms'),
    result('longest task of 50 ms and more while it polls', longestMs, 'ms'),
    result('database while it is open', databaseShare, '% of a core'),
  ];
}
