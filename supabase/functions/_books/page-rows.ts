import { z } from 'zod';
import type { Env } from '../_millrace/mod.ts';
import { blendResult, labelResult } from '../_pipelines/pages-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

// The Data API cuts longer answers off.
const rowsAtOnce = 500;

const columns = 'number, blend_result, label_result';
const pageRow = z.object({
  number: z.int(),
  blend_result: blendResult.nullable(),
  label_result: labelResult.nullable(),
});

/** A page of a book as far as it has been read; null for what is still to come, or failed. */
export type PageRow = z.output<typeof pageRow>;

/**
 * The pages of a book from number `from` to `to`, in order; those not inserted yet are left out. Throws a StageError.
 */
export async function readPages(bookId: string, env: Env, from = 1, to = Infinity): Promise<PageRow[]> {
  const client = projectClient(env);
  const pages: PageRow[] = [];
  for (let after = from - 1; ; ) {
    const { data, error, status } = await client.rows
      .from('pages')
      .select(columns)
      .eq('book_id', bookId)
      .gt('number', after)
      .lte('number', Math.min(to, 2 ** 31 - 1))
      .order('number')
      .limit(rowsAtOnce);
    if (error) throw projectError(status, error, `Reading the pages of book ${bookId}`);
    const rows = z.array(pageRow).parse(data);
    pages.push(...rows);
    const last = rows.at(-1);
    if (!last || rows.length < rowsAtOnce) return pages;
    after = last.number;
  }
}
