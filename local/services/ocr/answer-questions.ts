import { PageFault, type PageText } from './page-text.ts';
import { readImage } from './read-image.ts';
import { renderPage } from './render-page.ts';

/** A question to the program: the number of a page, and the document. */
export interface PageQuestion {
  bytes: Uint8Array;
  page: number;
}
/** The program's answer. It has only the data of an error, since no error gets through to the other process. */
export type PageAnswer = { read: PageText } | { fault: Pick<PageFault, 'code' | 'message'> };

process.on('message', async (question: PageQuestion) => process.send?.(await answer(question)));
// The parent process has gone, perhaps while this was loading.
process.on('disconnect', () => process.exit());
if (!process.connected) process.exit();
process.send?.('ready');

async function answer({ bytes, page }: PageQuestion): Promise<PageAnswer> {
  try {
    const rendered = await renderPage(bytes, page);
    const { width, height } = rendered;
    return { read: { page, width, height, ...(await readImage(rendered)) } };
  } catch (error) {
    if (error instanceof PageFault) return { fault: { code: error.code, message: error.message } };
    return { fault: { code: 'damaged_document', message: `the page cannot be read: ${(error as Error).message}` } };
  }
}
