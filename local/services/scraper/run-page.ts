import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import { charsetDoubts } from '../../../supabase/functions/_services/text/charset-doubts.ts';
import { lacksText } from '../../../supabase/functions/_services/text/page-content.ts';
import { type Fetched, type FetchOptions, readWebUrl } from '../http/fetch-url.ts';
import type { AllowedHosts, Resolve } from '../http/guarded-agent.ts';
import { startGuardedProxy } from '../http/guarded-proxy.ts';
import { JobError } from '../http/job-error.ts';
import { decodePage } from './decode-page.ts';
import type { Viewport } from './fetch-whole.ts';

export interface RunOptions extends FetchOptions {
  allowedHosts: AllowedHosts;
  resolve: Resolve;
  viewport?: Viewport | undefined;
}

/** The page that the scripts of a page made, or the address to which they lead. */
type RunPage = { page: Fetched } | { leadsTo: URL };

const defaultViewport: Viewport = { width: 1366, height: 768 };
/** The share of a page's time that may pass until its scripts are quiet. */
const settlingShare = 0.6;
const lookMs = 100;
/** How many times the bytes that a page may have all its parts together may have. */
const partsBytes = 5;
/** Parts that say nothing in text. */
const unread = new Set(['image', 'media', 'font']);
/** Parts whose text becomes the page's: a site's robots.txt is asked about them as about pages. */
const texts = new Set(['document', 'xhr', 'fetch']);

/**
 * Runs a page that was fetched, until its scripts are quiet, its text is there or most of its time is over. Chromium asks for
 * the page's parts by a proxy that refuses private addresses. Rejects with a JobError, or with an error of Playwright.
 */
export async function runPage(browser: Browser, fetched: Fetched, options: RunOptions): Promise<RunPage> {
  const { allowedHosts, resolve, maxBytes, signal } = options;
  const proxy = await startGuardedProxy({ allowedHosts, resolve, maxBytes: maxBytes * partsBytes });
  let context: BrowserContext | undefined;
  const end = () => void context?.close().catch(() => {});
  signal.addEventListener('abort', end, { once: true });
  try {
    context = await browser.newContext({
      userAgent: options.headers['user-agent'] ?? '',
      viewport: options.viewport ?? defaultViewport,
      // By default Chromium goes past a proxy to the machine itself.
      proxy: { server: proxy.url, bypass: '<-loopback>' },
      serviceWorkers: 'block',
      acceptDownloads: false,
    });
    signal.throwIfAborted();
    const ran = await runIn(context, fetched, options);
    if (!proxy.isOver()) return ran;
    const most = `${maxBytes * partsBytes} bytes`;
    throw new JobError('too_large', `${fetched.url.href}: its parts are larger than the limit of ${most}`);
  } finally {
    signal.removeEventListener('abort', end);
    await context?.close().catch(() => {});
    await proxy.stop();
  }
}

async function runIn(context: BrowserContext, fetched: Fetched, options: RunOptions): Promise<RunPage> {
  const page = await context.newPage();
  context.on('page', (popup) => void popup.close().catch(() => {}));
  const crash = new Promise<never>((_, reject) => {
    const message = `${fetched.url.href}: the page ended the browser that ran it`;
    page.on('crash', () => reject(new JobError('unreadable_page', message)));
  });
  crash.catch(() => {});
  let leadsTo: URL | undefined;
  let leave = (_: URL) => {};
  const left = new Promise<void>((resolve) => {
    leave = (url) => {
      leadsTo ??= url;
      resolve();
    };
  });
  const serve = serveParts(page, fetched, options, leave);
  // A page that is closed meanwhile waits for no answer.
  await context.route('**/*', (route) => serve(route).catch(() => {}));
  await Promise.race([page.goto(fetched.url.href, { waitUntil: 'commit' }), left, crash]);
  await Promise.race([settle(page, options.timeoutMs * settlingShare), left, crash]);
  return leadsTo ? { leadsTo } : { page: await Promise.race([readDom(page, fetched, options), crash]) };
}

/** Answers for the page itself with what was fetched; tells where a script leads it, and lets its parts through. */
function serveParts(page: Page, fetched: Fetched, options: RunOptions, leave: (url: URL) => void) {
  let isServed = false;
  return async (route: Route): Promise<void> => {
    const request = route.request();
    const type = request.resourceType();
    if (unread.has(type)) return route.abort();
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) {
      if (isServed) {
        await route.abort();
        const next = readWebUrl(request.url());
        if (request.method() === 'GET' && next.href !== fetched.url.href) leave(next);
        return;
      }
      isServed = true;
      const { text } = decodePage(fetched.body, fetched.contentType);
      const headers: Record<string, string> = { 'content-type': 'text/html; charset=utf-8' };
      if (fetched.cookies?.length) headers['set-cookie'] = fetched.cookies.join('\n');
      return route.fulfill({ status: 200, headers, body: text });
    }
    try {
      if (texts.has(type)) await options.check?.(readWebUrl(request.url()));
    } catch {
      // The page goes without what its site does not want read.
      return route.abort('blockedbyclient');
    }
    return route.continue();
  };
}

/** Waits until the page asks for nothing any more and has a text, for so many milliseconds at most. */
async function settle(page: Page, timeoutMs: number): Promise<void> {
  const end = Date.now() + timeoutMs;
  await page.waitForLoadState('networkidle', { timeout: timeoutMs }).catch(unlessTimeout);
  while (Date.now() < end) {
    const text = await page.evaluate<string>('document.body ? document.body.innerText.slice(0, 5000) : ""');
    if (/[\p{L}\p{N}]/u.test(text) && lacksText(text) === null) return;
    await pause(lookMs, undefined, { ref: false });
  }
}

function unlessTimeout(error: Error): void {
  if (error.name !== 'TimeoutError') throw error;
}

async function readDom(page: Page, fetched: Fetched, { maxBytes }: RunOptions): Promise<Fetched> {
  const { href } = fetched.url;
  const tooLarge = new JobError('too_large', `${href}: its scripts make it larger than the limit of ${maxBytes} bytes`);
  // Asks for the length first: otherwise a text of any size would be transferred whole.
  const length = await page.evaluate<number>(
    'document.documentElement ? document.documentElement.outerHTML.length : 0',
  );
  if (length > maxBytes) throw tooLarge;
  const body = Buffer.from(await page.content());
  if (body.length > maxBytes) throw tooLarge;
  const doubts = charsetDoubts(decodePage(fetched.body, fetched.contentType));
  return { ...fetched, url: addressOf(page, fetched.url), contentType: 'text/html; charset=utf-8', body, doubts };
}

/** Returns the address against which a page's links are read. A script may have changed it within the site. */
function addressOf(page: Page, fetched: URL): URL {
  const shown = URL.canParse(page.url()) ? new URL(page.url()) : fetched;
  if (shown.origin !== fetched.origin) return fetched;
  shown.hash = '';
  return shown;
}
