import { type Env, PermanentError } from '../_millrace/mod.ts';
import { type PageRow, readPages } from './page-rows.ts';

// With more gaps than this, a document would pass for a book that it is not.
const readableShare = 0.8;

/** All pages of a book whose pages are done. Throws a PermanentError when too many of them could not be read. */
export async function readBook(bookId: string, env: Env): Promise<PageRow[]> {
  const pages = await readPages(bookId, env);
  const read = pages.filter(({ blend_result: text, label_result: label }) => text && label).length;
  if (read === 0 || read < readableShare * pages.length) {
    throw new PermanentError(
      'too_few_pages',
      `Only ${read} of ${pages.length} pages could be read, and a book needs ${readableShare * 100} %: ` +
        'see why in text_layer_error, ocr_error, blend_error and label_error of its pages, then retry the run.',
    );
  }
  return pages;
}
