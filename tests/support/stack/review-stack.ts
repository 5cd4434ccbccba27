// A stack with articles, leads and their pages, and people at them, each with a browser of their own.
import { randomUUID } from 'node:crypto';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Row } from '../engine.ts';
import { complete } from '../examples/articles.ts';
import { defineArticles } from '../examples/define-articles.ts';
import { launchChromium } from './chromium.ts';
import { ProjectStack } from './project-stack.ts';

const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** A person at the review page. */
export interface Visitor {
  page: Page;
  token: string;
}

export class ReviewStack extends ProjectStack {
  #browser: Browser | undefined;
  readonly #contexts: BrowserContext[] = [];
  /** The lines that the pages wrote to the console as errors. */
  readonly faults: string[] = [];

  static async start(): Promise<ReviewStack> {
    const review = new ReviewStack(await ProjectStack.launch({ services: false }));
    try {
      review.#browser = await launchChromium();
      await defineArticles((statement, values) => review.rows(statement, values));
      // The tests do the work of its functions themselves.
      await review.rows(`select millrace.pause('articles'), millrace.pause('leads')`);
    } catch (error) {
      await review.stop();
      throw error;
    }
    return review;
  }

  override async stop(): Promise<void> {
    await this.#browser?.close();
    await super.stop();
  }

  get pageUrl(): string {
    return `${this.stack.apiUrl}/review/`;
  }

  /** A curator who signs in with the password `secret`. */
  async curatorWithPassword(name: string): Promise<void> {
    await this.account(`${name}@looms.test`, 'secret', { role: 'curator', name });
  }

  /** A token; a curator's unless other claims are given. */
  token(name: string, claims: Row = { app_metadata: { role: 'curator', name } }): Promise<string> {
    return this.stack.signUserToken({ sub: randomUUID(), ...claims });
  }

  /** A new browser window at the page. */
  async visit(url = this.pageUrl): Promise<Page> {
    const context = (await this.#browser?.newContext({ viewport: { width: 1200, height: 900 } })) as BrowserContext;
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on('pageerror', (error) => this.faults.push(String(error)));
    page.on('console', (message) => {
      // Chromium reports each answer that is no success, also those that the page shows.
      if (message.type() === 'error' && !/Failed to load resource/.test(message.text()))
        this.faults.push(message.text());
    });
    await page.route('https://images.test/**', (route) => route.fulfill({ contentType: 'image/png', body: pixel }));
    await page.goto(url);
    return page;
  }

  /** A curator, signed in. */
  async curator(name: string): Promise<Visitor> {
    return this.signedInAt(await this.token(name));
  }

  /** A person with this token, signed in. */
  async signedInAt(token: string): Promise<Visitor> {
    const page = await this.visit();
    await page.getByLabel('Publishable key').fill(this.stack.publishableKey);
    await page.getByRole('radio', { name: 'access token' }).check();
    await page.getByRole('textbox', { name: 'Access token' }).fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('status').filter({ hasText: 'Signed in as' }).waitFor();
    return { page, token };
  }

  /** Closes all windows; fails the test when a page met an error of its own. */
  async closeWindows(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
    expect(this.faults.splice(0)).toEqual([]);
  }

  /** A complete article at 300 with this title. */
  async article(title: string, changes: Row = {}): Promise<string> {
    const row = { ...complete, title, ...changes };
    const names = Object.keys(row);
    return this.value(
      `insert into public.ingestion_queue (${names}) values (${names.map((_, n) => `$${n + 1}`)}) returning id`,
      Object.values(row),
    );
  }

  /** A lead of an account. */
  async lead(account: string, email: string): Promise<string> {
    return this.value(
      `insert into public.leads (email, company_url, account_id) values ($1, 'https://looms.test', $2) returning id`,
      [email, account],
    );
  }

  /** Does the work of a lead's stage. */
  async workLead(id: string, stage: string, result: Row = {}): Promise<void> {
    await this.rows(
      `select millrace.complete_stage(id, $2, $3) from millrace.runs where entity_id = $1 and status = 'running'`,
      [id, stage, JSON.stringify(result)],
    );
  }

  /** The codes that an article has had, from the second on. */
  async codes(id: string): Promise<number[]> {
    const steps = await this.rows<{ to_status: number }>(
      'select to_status from public.status_history where queue_id = $1 order by id',
      [id],
    );
    return steps.slice(1).map((step) => step.to_status);
  }

  /** Does the work of the stage publish, or of republish. */
  async publish(id: string, stage = 'publish'): Promise<void> {
    await this.rows(
      `select millrace.complete_stage(r.id, $2, to_jsonb(q) || jsonb_build_object('slug', q.id, 'notify', false))
       from millrace.runs r join public.ingestion_queue q on q.id::text = r.entity_id
       where q.id = $1 and r.status = 'running'`,
      [id, stage],
    );
  }
}
