// People at the operator's page, each with a browser of their own, over a stack in the middle of its work.
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import { launchChromium } from './chromium.ts';
import { OrdersStack } from './orders-stack.ts';
import { ProjectStack } from './project-stack.ts';

export class OperateStack extends OrdersStack {
  #browser: Browser | undefined;
  readonly #contexts: BrowserContext[] = [];
  /** What the pages wrote to the console as errors, and whom else they asked. */
  readonly faults: string[] = [];

  static override async start(): Promise<OperateStack> {
    const operate = new OperateStack(await ProjectStack.launch({ services: false }));
    operate.#browser = await launchChromium().catch(async (error) => {
      await operate.stop();
      throw error;
    });
    return operate.filled();
  }

  override async stop(): Promise<void> {
    await this.#browser?.close();
    await super.stop();
  }

  get pageUrl(): string {
    return `${this.stack.apiUrl}/operate/`;
  }

  /** A new browser window at an address of the page. */
  async visit(url: string, options: { dark?: boolean; width?: number } = {}): Promise<Page> {
    const context = (await this.#browser?.newContext({
      viewport: { width: options.width ?? 1280, height: 900 },
      colorScheme: options.dark ? 'dark' : 'light',
    })) as BrowserContext;
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on('pageerror', (error) => this.faults.push(String(error)));
    page.on('console', (message) => {
      // Chromium reports each answer that is no success, also those that the page shows.
      if (message.type() === 'error' && !/Failed to load resource/.test(message.text()))
        this.faults.push(message.text());
    });
    page.on('request', (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol !== 'data:' && origin !== new URL(this.stack.apiUrl).origin)
        this.faults.push(`asked ${request.url()}`);
    });
    await page.goto(url);
    return page;
  }

  /** A window that a link has opened. */
  async atMachine(options: { dark?: boolean; width?: number } = {}): Promise<Page> {
    const page = await this.visit(this.stack.operateLink(), options);
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor();
    return page;
  }

  /** A window of somebody who signs in with a token. */
  async signedInAs(subject: string): Promise<Page> {
    const page = await this.visit(this.pageUrl);
    await page.getByLabel('Publishable key').fill(this.stack.publishableKey);
    await page.getByRole('textbox', { name: 'Access token' }).fill(await this.stack.signUserToken({ sub: subject }));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor();
    return page;
  }

  /** Closes all windows; fails the test when a page met an error of its own or asked anybody else. */
  async closeWindows(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
    expect(this.faults.splice(0)).toEqual([]);
  }
}
