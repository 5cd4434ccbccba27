// Articles for tests: rows of ingestion_queue, brought to a code by real moves, and the people who act on them.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import { projectTest as base, type Engine, type Row } from '../engine.ts';
import { completed, Worker } from '../worker.ts';
import { defineArticles } from './define-articles.ts';

/** An article with everything that a review needs. */
export const complete = {
  title: 'Old Title',
  summary: 'Old summary',
  tags: ['wool', 'looms'],
  thumbnail_url: 'https://images.test/loom.jpg',
  entry_type: 'manual',
};

/** Claims of a curator's token. */
export const curatorClaims = (name: string) => ({ sub: randomUUID(), app_metadata: { role: 'curator', name } });

export class Articles {
  readonly engine: Engine;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** Inserts an article, as postgres unless another session is given; resolves to its row. */
  async insert(values: Row, client: pg.Client = this.engine.sql): Promise<Row & { id: string }> {
    const names = Object.keys(values);
    const places = names.map((_, index) => `$${index + 1}`);
    const { rows } = await client.query(
      `insert into public.ingestion_queue (${names}) values (${places}) returning *`,
      Object.values(values),
    );
    return rows[0];
  }

  /** The row as it stands. */
  async row(id: string): Promise<Row> {
    const [row] = await this.engine.rows('select * from public.ingestion_queue where id = $1', [id]);
    if (!row) throw new Error(`there is no article ${id}`);
    return row;
  }

  /** Writes codes, one after the other. */
  async move(id: string, ...codes: number[]): Promise<void> {
    for (const code of codes) {
      await this.engine.sql.query('update public.ingestion_queue set status_code = $2 where id = $1', [id, code]);
    }
  }

  /** A new complete article, taken along these codes from 300 on. */
  async reviewed(...codes: number[]): Promise<string> {
    const { id } = await this.insert(complete);
    await this.move(id, ...codes);
    return id;
  }

  /** A published article and its publication. */
  async published(): Promise<{ id: string; publication: string }> {
    const id = await this.reviewed(310, 330);
    await this.publish(id);
    const publication = await this.engine.value<string>('select id from public.publication where queue_id = $1', [id]);
    return { id, publication };
  }

  /** Does the work of the stage publish for an approved article, or of republish for an edited one. */
  async publish(id: string, stage = 'publish'): Promise<void> {
    const { title, summary, tags, thumbnail_url, url } = await this.row(id);
    await this.finish(stage, { slug: id, title, summary, tags, thumbnail_url, url, notify: false });
  }

  /** Completes a stage for the article whose turn it is. */
  async finish(stage: string, result: Row): Promise<void> {
    const worker = await Worker.of(this.engine, stage, 'articles');
    expect(await worker.report(completed(await worker.takeOne(), result))).toEqual(['accepted']);
  }

  /** The history of an article, oldest first. */
  async history(id: string): Promise<Row[]> {
    return this.engine.rows(
      `select from_status, to_status, changed_by, changes from public.status_history where queue_id = $1
       order by id`,
      [id],
    );
  }
}

/** Vitest's test with a fresh engine and articles. */
export const test = base.extend<{ articles: Articles }>({
  articles: async ({ engine }, use) => {
    await defineArticles((statement, values) => engine.rows(statement, values));
    await use(new Articles(engine));
  },
});
