// A whole stack with the books pipelines: books go in, and a test waits for what becomes of them.
import { randomUUID } from 'node:crypto';
import type { PostgrestClient } from '@supabase/postgrest-js';
import { expect } from 'vitest';
import type { Row } from '../engine.ts';
import { type Caller as AnyCaller, ProjectStack } from './project-stack.ts';

const patienceMs = 150_000;

/** A signed-in user of an account, or the project itself. */
export interface Caller extends AnyCaller {
  account: string;
}

export interface Attempt extends Row {
  stage: string;
  state: string;
  created_at: Date;
  finished_at: Date;
  error_code: string | null;
  error_message: string | null;
}

export class BooksStack extends ProjectStack {
  static async start(): Promise<BooksStack> {
    return new BooksStack(await ProjectStack.launch({}));
  }

  /** A user of a new account. */
  async user(): Promise<Caller> {
    const account = randomUUID();
    return { account, ...(await this.signedIn({ app_metadata: { account_id: account } })) };
  }

  async book(id: string): Promise<Row> {
    const [row] = await this.rows(
      'select b.*, s.status, s.current_error from public.books b join public.book_pipeline_status s using (id) where id = $1',
      [id],
    );
    return row ?? {};
  }

  /** The attempts at a book's own stages, at those of its table of contents, or at those of its pages, in order. */
  async attempts(id: string, pipeline: 'books' | 'toc' | 'pages'): Promise<Attempt[]> {
    return this.rows<Attempt>(
      `select s.name as stage, g.number, a.state::text, a.created_at, a.started_at, a.finished_at, a.error ->> 'code' as error_code, a.error ->> 'message' as error_message
       from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id join millrace.attempts a on a.run_id = r.id join millrace.stages s on s.id = a.stage_id
       left join public.pages g on g.id::text = r.entity_id
       where p.name = $2 and (r.entity_id = $1 or g.book_id::text = $1) order by a.id`,
      [id, pipeline],
    );
  }

  /** Waits until a book is completed, failed, or waits for a person; anything else fails the test with all there is to know. */
  async settled(id: string): Promise<string> {
    const over = async () => {
      const { status } = await this.book(id);
      return status !== 'running' && status !== 'pending' && status;
    };
    await this.until('the book is over', over, patienceMs, () => this.diagnose(id));
    return (await this.book(id)).status as string;
  }

  private async diagnose(id: string): Promise<Row[]> {
    const attempts = [
      ...(await this.attempts(id, 'books')),
      ...(await this.attempts(id, 'toc')),
      ...(await this.attempts(id, 'pages')),
    ];
    return [
      ...attempts.filter(({ state }) => !['completed', 'skipped'].includes(state)),
      ...this.lastWords(
        'books-split',
        'books-metadata',
        'books-structure',
        'books-assemble',
        'pages-ocr',
        'pages-label',
        'toc-find',
        'millrace',
      ),
    ];
  }
}

/** A book to upload; without `path` it lies where a book of that account and id should. */
export interface Upload {
  bytes: Uint8Array | string;
  title?: string;
  mediaType?: string;
  /** The kind that the row says, where that is not the file's own kind. */
  claimed?: string;
}

/** Uploads a book, inserts its row and starts it, as an application does. Returns the row's id. */
export async function submitBook({ account, rows, storage }: Caller, upload: Upload): Promise<string> {
  const { bytes, title = 'A book', mediaType = 'application/pdf', claimed = mediaType } = upload;
  const id = randomUUID();
  const path = `${account}/${id}.${mediaType === 'text/plain' ? 'txt' : 'pdf'}`;
  const file = new Blob([typeof bytes === 'string' ? bytes : new Uint8Array(bytes)], { type: mediaType });
  const uploaded = await storage.from('books').upload(path, file, { contentType: mediaType });
  expect(uploaded.error).toBeNull();
  const inserted = await rows
    .from('books')
    .insert({ id, account_id: account, title, source_path: path, media_type: claimed });
  expect(inserted.error).toBeNull();
  await queueBook(rows, id);
  return id;
}

/** Writes `queued` to split_status. */
export async function queueBook(rows: PostgrestClient, id: string): Promise<void> {
  const { error } = await rows.from('books').update({ split_status: 'queued' }).eq('id', id);
  expect(error).toBeNull();
}
