// Where the operator's page is, which messages about alerts link to.
import { callDatabase } from './call-database.ts';

/**
 * Keeps the page's address in the project, null for what is kept already. Resolves to the one that is kept from now on: an address of
 * this machine does not replace one that all can open. Throws a CommandError where the project does not take it.
 */
export async function keepPage(url: string, headers: Record<string, string>, page: string | null): Promise<string> {
  const { page_url } = await callDatabase<{ page_url: string | null }>(url, headers, 'millrace_keep_page', {
    p_page_url: page,
  });
  return page_url ?? '';
}
