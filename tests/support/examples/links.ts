// Links for tests: rows of linkedin_links, worked on as the engine's workers do, with the page of each drafted.
import { gzipSync } from 'node:zlib';
import type { Engine, Row } from '../engine.ts';
import { completed, resume, Worker, waiting } from '../worker.ts';

/** The words of every row of linkedin_links are kept in public.words, in order. */
export async function recordWords(ask: (statement: string) => Promise<unknown>): Promise<void> {
  await ask(`
    create table public.words (id bigint generated always as identity, link_id bigint, word text);
    create function public.note_word() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
      insert into public.words (link_id, word) values (new.id, new.status);
      return null;
    end $$;
    create trigger note_first after insert on public.linkedin_links
      for each row execute function public.note_word();
    create trigger note_word after update on public.linkedin_links
      for each row when (old.status is distinct from new.status) execute function public.note_word()`);
}

/** The result that a stage which understood a job stores. */
export const stagedJob = (changes: Row = {}): Row => ({
  kind: 'job',
  title: 'Weaver',
  company: 'Acme GmbH',
  location: 'Ulm',
  description: 'Weave cloth.',
  salary: null,
  extras: {
    ...{ read_from: 'json_ld', application_url: null, valid_through: null, date_posted: null },
    ...{ employment_type: null, company_website: null, company_linkedin: null, problems: [] },
  },
  ...changes,
});

/** The result that the extraction of a job stores. */
export const extractedJob = (company = 'Acme GmbH', changes: Row = {}): Row => ({
  job: {
    title: 'Weaver',
    location: 'Ulm',
    salary: null,
    jd: 'Weave cloth.',
    application_url: null,
    valid_through: null,
  },
  company: { name: company, website: null, linkedin_url: null, size: null, sector: null },
  by: 'page',
  ...changes,
});

/** A page as a scrape drafts it. */
export const pageOf = (html = '<p>Weaver wanted</p>'): Row => ({
  http_status: 200,
  html_gzip_base64: gzipSync(html).toString('base64'),
  raw_json: { json_ld: [], broken: 0, open_graph: {}, meta: {}, title: '', language: null },
  fingerprint: 'f',
  notes: { final_url: 'https://a.test/', content_type: 'text/html' },
});

export class Links {
  readonly engine: Engine;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  add(url: string, values: Row = {}): Promise<string> {
    const names = ['raw_url', ...Object.keys(values)];
    return this.engine.value<string>(
      `insert into public.linkedin_links (${names}) values (${names.map((_, index) => `$${index + 1}`)}) returning id`,
      [url, ...Object.values(values)],
    );
  }

  async row(id: string): Promise<Row> {
    const [row] = await this.engine.rows('select * from public.linkedin_links where id = $1', [id]);
    if (!row) throw new Error(`there is no link ${id}`);
    return row;
  }

  write(id: string, status: string): Promise<unknown> {
    return this.engine.sql.query('update public.linkedin_links set status = $2 where id = $1', [id, status]);
  }

  worker(stage: string): Promise<Worker> {
    return Worker.of(this.engine, stage, 'links');
  }

  /** Completes a stage for the one link whose turn it is. */
  async finish(stage: string, result: Row): Promise<void> {
    const worker = await this.worker(stage);
    const { items } = await worker.complete([completed(await worker.takeOne(), result)]);
    if (items[0]?.verdict !== 'accepted') throw new Error(`${stage}: ${JSON.stringify(items)}`);
  }

  /** Classifies the one link that waits for it, as a rule would. */
  classify(classification: string): Promise<void> {
    return this.finish('classify', { classification, by: 'rule' });
  }

  /** Drafts a page under a job. */
  async draft(id: string, job: string, html = '<p>Weaver wanted</p>'): Promise<void> {
    await this.engine.rows('select public.draft_link_page($1, $2, $3)', [id, job, pageOf(html)]);
  }

  /** Fetches the page of the one link that waits for it. */
  async scrape(stage: string, job: string): Promise<void> {
    const worker = await this.worker(stage);
    const item = await worker.takeOne();
    await worker.report(waiting(item, job));
    await this.draft(item.entity_id, job);
    const answer = await resume(this.engine, [
      { submission: item.submission, service: 'scraper', job_id: job, outcome: 'completed', result: scraped(job) },
    ]);
    if (answer.items[0]?.verdict !== 'accepted') throw new Error(JSON.stringify(answer));
  }
}

/** The result that a scrape stores. */
export const scraped = (draft: string): Row => ({ draft, http_status: 200, bytes: 20, fingerprint: 'f' });
