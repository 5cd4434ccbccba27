import type { getDocumentProxy } from 'unpdf';
import { excerpt } from '../../_millrace/mod.ts';

/** An entry of the outline that a PDF brings along, which readers show beside its pages. */
export interface PdfOutlineEntry {
  title: string;
  /** From 1 for the highest. */
  level: number;
  /** The place of the page that it leads to, from 1; null where it leads elsewhere. */
  page: number | null;
}

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;
type Node = Awaited<ReturnType<Document['getOutline']>>[number];

const mostEntries = 2000;
const deepestLevel = 8;
const longestTitle = 300;

/** The file's own outline, in its order; the first 2000 entries of one that is longer. Empty where it has none. */
export async function readOutline(document: Document): Promise<PdfOutlineEntry[]> {
  const entries: PdfOutlineEntry[] = [];
  const add = async (nodes: readonly Node[], level: number): Promise<void> => {
    for (const node of nodes) {
      if (entries.length >= mostEntries) return;
      const title = excerpt(node.title.replace(/\s+/g, ' ').trim(), longestTitle);
      if (title) entries.push({ title, level, page: await pageOf(document, node.dest) });
      if (level < deepestLevel) await add(node.items, level + 1);
    }
  };
  await add((await document.getOutline()) ?? [], 1);
  return entries;
}

/** The page, from 1, of a destination, which is a name or a reference to a page; null for a broken destination. */
async function pageOf(document: Document, dest: Node['dest']): Promise<number | null> {
  try {
    const [page] = (typeof dest === 'string' ? await document.getDestination(dest) : dest) ?? [];
    if (typeof page === 'number') return page + 1;
    if (typeof page !== 'object' || page === null) return null;
    return (await document.getPageIndex(page)) + 1;
  } catch {
    return null;
  }
}
