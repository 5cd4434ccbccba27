// The demo of the articles pipelines, on a stack of its own.
import process from 'node:process';
import type pg from 'pg';
import pc from 'picocolors';
import { reviewLink } from '../../platform/review-link.ts';
import { readSettings } from '../../platform/settings.ts';
import { allowHosts } from '../leads/leads.ts';
import { heading, onAStack, print } from '../on-a-stack.ts';
import { countRuns } from '../report.ts';
import { startNews } from '../samples/news/server.ts';
import { type DemoSettings, demoSettings } from '../settings.ts';
import { stuck } from '../watch-progress.ts';
import { wrapText } from '../wrap-text.ts';
import {
  type DemoSource,
  insertManual,
  insertSources,
  insertTopics,
  manualEntries,
  sampleSources,
  sourcesFor,
} from './article-seeds.ts';
import { editPublished } from './edit-published.ts';
import { articleSteps } from './next-steps-articles.ts';
import { printEnded, printHistory, printPublications, printSources } from './report-articles.ts';
import { askVerdicts, carryOut, outcomes, readWaiting, statedVerdicts } from './review-articles.ts';
import { watchArticles } from './watch-articles.ts';

/** The actor of the demo, as the history names them. */
const actor = 'user:demo';
/** How many articles of each source that the user names are taken. */
const fewArticles = 20;

/** Runs the articles pipelines from feeds to publications. Resolves to the exit code. */
export async function runArticles(
  { keep, urls }: { keep: boolean; urls: URL[] },
  ending: AbortSignal,
): Promise<number> {
  const news = await startNews();
  const settings = withHosts(demoSettings(readSettings(), 'articles'), urls, news.url);
  const title = 'Millrace: from feeds to reviewed and published articles, on Supabase without Docker';
  try {
    return await onAStack({ title, settings, keep, ending }, async (stack, watching) => {
      const { client } = watching;
      await client.query(`select set_config('millrace.actor', $1, false)`, [actor]);
      const isOwn = urls.length > 0;
      const sources = isOwn ? sourcesFor(urls) : sampleSources(news.url);
      await enter(client, sources, isOwn ? null : news.url);
      // One poll is enough, since a user's source may be a large site.
      const watch = () => watchArticles(watching, isOwn);
      const rested = await watch();
      if (ending.aborted) return undefined;

      heading('3. The sources');
      const failing = await printSources(client, sources, print);
      heading('4. What ended before a review');
      await printEnded(client, print);
      heading('5. The review');
      const decided = await review(client, ending);
      if (ending.aborted) return undefined;
      const publishedAll = await watch();
      if (ending.aborted) return undefined;

      heading('6. The publications');
      const published = await printPublications(client, print);
      const edited = await editPublished(client, actor, print);
      await watch();
      if (edited) {
        print('');
        await printHistory(client, edited, print);
      }
      return {
        subject: { name: 'Runs', count: countRuns, last: 'code' },
        failed: !rested || !publishedAll || failing > 0 || published < decided,
        complaint: rested && publishedAll ? undefined : stuck,
        nextSteps: articleSteps(news.url, await reviewLink(stack, 'curator')),
      };
    });
  } finally {
    await news.stop();
  }
}

/** Returns the settings with which the functions and the scraper may read the sources, though they are on this machine. */
function withHosts(settings: DemoSettings, urls: URL[], site: string): DemoSettings {
  const { env } = settings;
  const reachable = [site, ...urls.map(({ href }) => href)];
  for (const name of ['SCRAPER_ALLOW_HOSTS', 'FEED_ALLOW_HOSTS']) env[name] = allowHosts(reachable, env[name]);
  if (urls.length > 0) {
    // Every article passes, since the sample topics do not fit the user's sources.
    Object.assign(env, { ARTICLES_SCORE_THRESHOLD: '0', SOURCE_NEW_URLS: String(fewArticles) });
    settings.modelNote.push(
      `Each source is polled once, then switched off; at most ${fewArticles} of its articles are taken, whatever they are about.`,
    );
  }
  return settings;
}

/** Enters sources, and on the sample site what people enter by hand. */
async function enter(client: pg.Client, sources: DemoSource[], site: string | null): Promise<void> {
  heading(`2. ${sources.length} ${sources.length === 1 ? 'source' : 'sources'}, and articles entered by hand`);
  await insertTopics(client);
  await insertSources(client, sources);
  print(`  ${pc.cyan('insert into source (name, address) values …;')}  ${pc.dim('each is due at once')}`);
  if (site !== null) {
    print(`  ${pc.cyan('insert into ingestion_queue …;')}  ${pc.dim('what an entry brings says where it begins')}`);
    const entered = await insertManual(client, manualEntries(site));
    const begins = entered.map(({ says, code, name }) => `${says}: ${code} ${name.replaceAll('_', ' ')}`);
    for (const line of wrapText(begins.join('; '), 88)) print(`    ${line}`);
  }
  await client.query('select millrace.sweep()');
  print('');
}

/** Has the waiting articles decided. Resolves to how many were approved. */
async function review(client: pg.Client, ending: AbortSignal): Promise<number> {
  const waiting = await readWaiting(client);
  const isPerson = process.stdin.isTTY === true && process.stdout.isTTY === true;
  print(
    isPerson
      ? `  ${waiting.length} articles wait at 300. What you leave stays there; Ctrl-D ends the review.`
      : '  Nobody is at a terminal, so the demo decides: it edits the first title and rejects the last.',
  );
  const verdicts = isPerson ? await askVerdicts(waiting, ending) : statedVerdicts(waiting);
  if (ending.aborted) return 0;
  if (isPerson) print('');
  let approved = 0;
  for (const [at, verdict] of verdicts.entries()) {
    const article = waiting[at];
    if (!article) continue;
    await carryOut(client, article.id, verdict);
    if (verdict.kind === 'approve' || verdict.kind === 'edit') approved++;
  }
  for (const line of outcomes(verdicts, waiting)) print(`  ${line}`);
  return approved;
}
