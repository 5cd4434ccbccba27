// Requests of the page to the project's Data API: articles, their codes and their history. Row-level security decides
// which rows a signed-in person may see and change.
import { Refusal } from '../base/refusal.ts';
import { callProject, type Session, session } from '../base/session.ts';

export interface Code {
  code: number;
  name: string;
  description: string | null;
}

export interface Listed {
  id: string;
  title: string | null;
  url: string | null;
  status_code: number;
  status_changed_at: string;
  entry_type: string;
  score: number | null;
}

export interface Change {
  old: unknown;
  new: unknown;
}

export interface Step {
  id: number;
  from_status: number | null;
  to_status: number;
  changed_at: string;
  changed_by: string | null;
  duration_ms: number | null;
  changes: Record<string, Change> | null;
}

export interface Article extends Listed {
  revision: number;
  summary: string | null;
  tags: string[] | null;
  thumbnail_url: string | null;
  content: string | null;
  author: string | null;
  published_at: string | null;
  entered_as: string;
  duplicate_of: string | null;
  is_copy: boolean;
  /** Changes by the edit that is under way, by field. */
  status_changes: Record<string, Change> | null;
  /** The newest step first. */
  history: Step[];
}

/** Rows of a table or a view. */
export async function rows<Row>(
  table: string,
  query: Record<string, string | number>,
  given: Session | null = session.value,
): Promise<Row[]> {
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return (await callProject(`/rest/v1/${table}?${search}`, {}, given)) as Row[];
}

export async function fetchArticle(id: string): Promise<Article> {
  const [[article], history] = await Promise.all([
    rows<Omit<Article, 'history'>>('ingestion_queue', { id: `eq.${id}`, limit: 1 }),
    rows<Step>('status_history', { queue_id: `eq.${id}`, order: 'id.desc', limit: 200 }),
  ]);
  if (!article)
    throw new Refusal(404, { message: 'This article is not there (any more).', hint: 'Go back to the list.' });
  return { ...article, history };
}

/** Writes to an article as it was seen; resolves to false when it is not as it was seen. */
export async function write(
  { id, status_code: code, revision }: Article,
  changes: Record<string, unknown>,
): Promise<boolean> {
  const query = new URLSearchParams({ id: `eq.${id}`, status_code: `eq.${code}`, revision: `eq.${revision}` });
  const written = (await callProject(`/rest/v1/ingestion_queue?${query}`, {
    method: 'PATCH',
    body: changes,
    headers: { prefer: 'return=representation' },
  })) as unknown[];
  return written.length > 0;
}
