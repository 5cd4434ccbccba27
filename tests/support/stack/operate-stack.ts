// People at the operator's page, each with a browser of their own, over a stack in the middle of its work.
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import { launchChromium } from './chromium.ts';
import { OrdersStack } from './orders-stack.ts';
import { ProjectStack } from './project-stack.ts';

export class OperateStack extends OrdersStack {
  #browser: Browser | undefined;
  readonly #contexts: BrowserContext[] = [];
  /** The window that tests share which leave nothing behind that a load of the page does not undo. */
  #shared: Page | undefined;
  readonly #host = http.createServer((request, response) => void hostPage(request, response));
  /** The lines that the pages wrote to the console as errors, and the other hosts that they called. */
  readonly faults: string[] = [];

  static override async start(): Promise<OperateStack> {
    const operate = new OperateStack(await ProjectStack.launch({ services: false }));
    operate.#browser = await launchChromium().catch(async (error) => {
      await operate.stop();
      throw error;
    });
    await new Promise<void>((resolve) => operate.#host.listen(0, '127.0.0.1', resolve));
    return operate.filled();
  }

  override async stop(): Promise<void> {
    await this.#browser?.close();
    this.#host.close();
    await super.stop();
  }

  get pageUrl(): string {
    return `${this.stack.apiUrl}/operate/`;
  }

  /** Where a static host shows the page, far from the project. */
  get hostedUrl(): string {
    return `http://127.0.0.1:${(this.#host.address() as AddressInfo).port}/`;
  }

  /** A new browser window at an address of the page. */
  async visit(url: string): Promise<Page> {
    const context = (await this.#browser?.newContext({
      viewport: { width: 1280, height: 900 },
      colorScheme: 'light',
    })) as BrowserContext;
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on('pageerror', (error) => this.faults.push(String(error)));
    page.on('console', (message) => {
      // Chromium reports each answer that is no success, also those that the page shows.
      if (message.type() === 'error' && !/Failed to load resource/.test(message.text()))
        this.faults.push(message.text());
    });
    page.on('request', (request) => {
      const { origin, protocol } = new URL(request.url());
      if (
        protocol !== 'data:' &&
        ![this.stack.apiUrl, this.hostedUrl].some((known) => new URL(known).origin === origin)
      )
        this.faults.push(`asked ${request.url()}`);
    });
    await page.goto(url);
    return page;
  }

  /** A window that a link has opened: its own for whoever turns its clock or loads a script before the page's. */
  async atMachine({ isOwn = false, width = 1280 } = {}): Promise<Page> {
    const kept = isOwn ? undefined : this.#shared;
    const link = this.stack.operateLink();
    const page = kept ?? (await this.visit(link));
    // A test that leaves closes the API for all.
    if (kept) await page.goto(link);
    else if (!isOwn) this.#shared = page;
    await page.setViewportSize({ width, height: 900 });
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor();
    return page;
  }

  /** A window of somebody who signs in with a token. */
  async signedInAs(subject: string): Promise<Page> {
    const page = await this.visit(this.pageUrl);
    await page.getByLabel('Publishable key').fill(this.stack.publishableKey);
    await this.enterToken(page, await this.stack.signUserToken({ sub: subject }));
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor();
    return page;
  }

  /** Signs in by a token. */
  async enterToken(page: Page, token: string): Promise<void> {
    await page.getByRole('radio', { name: 'access token' }).check();
    await page.getByRole('textbox', { name: 'Access token' }).fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  /** Makes a user with a password, and an operator of them where a role is named; resolves to their id. */
  async person(name: string, role?: 'viewer' | 'operator'): Promise<string> {
    const id = await this.account(`${name}@example.com`, `${name}'s password`);
    if (role) await this.rows('insert into millrace.operators (subject, role) values ($1, $2)', [id, role]);
    return id;
  }

  /** Fills in what a user signs in with, and sends it. */
  async enterPassword(page: Page, name: string, password = `${name}'s password`): Promise<void> {
    await page.getByLabel('Address of the project').fill(this.stack.apiUrl);
    await page.getByLabel('Publishable key').fill(this.stack.publishableKey);
    await page.getByRole('radio', { name: 'e-mail and password' }).check();
    await page.getByLabel('E-mail', { exact: true }).fill(`${name}@example.com`);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  /** Closes all windows; fails the test when a page met an error of its own or asked anybody else. */
  async closeWindows(): Promise<void> {
    for (const context of this.#contexts.splice(0)) if (context !== this.#shared?.context()) await context.close();
    await this.#clearShared();
    expect(this.faults.splice(0)).toEqual([]);
  }

  /** Leaves nothing in the shared window of the test before: no answer made up, nothing kept, no colours, no page that asks. */
  async #clearShared(): Promise<void> {
    const page = this.#shared;
    if (!page || page.url() === 'about:blank') return;
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.evaluate(() => localStorage.clear());
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'no-preference' });
    await page.goto('about:blank');
  }
}

const files = path.join(import.meta.dirname, '..', '..', '..', 'pages', 'dist', 'operate');

/** Answers with a file of the built page, as any host of static files does. */
async function hostPage({ url = '/' }: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const name = /^\/([\w-]+\.(?:js|css))$/.exec(url)?.[1] ?? 'index.html';
  const type = { '.js': 'text/javascript', '.css': 'text/css' }[path.extname(name)] ?? 'text/html';
  response.writeHead(200, { 'content-type': type });
  response.end(await fs.promises.readFile(path.join(files, name)));
}
