import type { Browser } from 'playwright-core';
import { within } from '../../platform/deadline.ts';
import type { Fetched } from '../http/fetch-url.ts';
import { JobError } from '../http/job-error.ts';
import { isHtml } from './decode-page.ts';
import { fetchWhole } from './fetch-whole.ts';
import { findChromium, installChromium } from './find-chromium.ts';
import { type RunOptions, runPage } from './run-page.ts';

/** The version with which the tests run. */
const library = 'playwright-core@1.65.1';
const maxRedirects = 5;

/** A running Chromium that reads pages as their scripts make them. */
export class PageBrowser {
  readonly #launch: () => Promise<Browser>;
  #browser: Promise<Browser>;

  private constructor(launch: () => Promise<Browser>) {
    this.#launch = launch;
    this.#browser = launch();
  }

  /**
   * Starts Chromium, in its sandbox unless `isolation` says otherwise. Rejects with an Error that has the command for what is
   * missing.
   */
  static async start(
    isolation: 'sandboxed' | 'unsandboxed',
    env: Record<string, string | undefined>,
  ): Promise<PageBrowser> {
    const { chromium } = await import('playwright-core').catch(() => {
      throw new Error(`SCRAPER_BROWSER needs playwright-core: run npm install --save-dev --save-exact ${library}`);
    });
    const executablePath = findChromium(env);
    if (!executablePath) {
      const remedy = `run "${installChromium}" as root, or name the program in CHROMIUM_PATH`;
      throw new Error(`SCRAPER_BROWSER needs Chromium, and this machine has none: ${remedy}`);
    }
    const chromiumSandbox = isolation === 'sandboxed';
    if (chromiumSandbox && process.getuid?.() === 0) {
      const remedy = 'start it as another user, or write SCRAPER_BROWSER=unsandboxed where you trust all sites';
      throw new Error(`SCRAPER_BROWSER=1 needs Chromium's sandbox, which root cannot have: ${remedy}`);
    }
    // WebRTC alone would go past the proxy.
    const args = ['--disable-dev-shm-usage', '--force-webrtc-ip-handling-policy=disable_non_proxied_udp'];
    // Playwright leaves Ctrl-C alone: the stack handles the signal, and closes the browser.
    const signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
    const browser = new PageBrowser(() => chromium.launch({ executablePath, chromiumSandbox, args, ...signals }));
    await browser.#browser;
    return browser;
  }

  /**
   * Gets a page as fetchWhole() does, and runs it where it is HTML. The result is the page that its scripts made, in UTF-8. An
   * address to which a script leads counts as a redirect.
   */
  async bring(start: URL, options: RunOptions): Promise<Fetched> {
    let fetched = await fetchWhole(start, options);
    for (let hops = 0; hops <= maxRedirects; hops++) {
      if (!isHtml(fetched.contentType) || fetched.body.toString('latin1').trim() === '') return fetched;
      const ran = await this.#run(fetched, options);
      if ('page' in ran) return ran.page;
      fetched = await fetchWhole(ran.leadsTo, options);
    }
    throw new JobError('too_many_redirects', `${start.href}: its scripts lead on more than ${maxRedirects} times`);
  }

  async stop(): Promise<void> {
    await (await this.#browser.catch(() => undefined))?.close();
  }

  async #run(fetched: Fetched, options: RunOptions): ReturnType<typeof runPage> {
    const browser = await this.#running();
    const run = (chosen: Browser) =>
      within(options.timeoutMs, options.signal, (signal) => runPage(chosen, fetched, { ...options, signal }));
    return run(browser).catch(async (error) => {
      // A browser that ended took all pages with it, most of which did nothing to end it.
      if (browser.isConnected() || options.signal.aborted) throw error;
      return run(await this.#running());
    });
  }

  async #running(): Promise<Browser> {
    const current = this.#browser;
    const browser = await current.catch(() => undefined);
    if (browser?.isConnected()) return browser;
    if (this.#browser === current) this.#browser = this.#launch();
    return this.#browser;
  }
}
