// The article that is open: what a curator writes into it, and what others make of it meanwhile. Each write says which code
// and which text the curator saw; when somebody else was faster it touches no row, and the page tells who it was.
import { signal } from '@preact/signals';
import { complain, say } from '../base/messages.tsx';
import { askNow } from '../base/poll.ts';
import { Refusal } from '../base/refusal.ts';
import type { Move } from './moves.ts';
import { asText, codeName, person } from './names.ts';
import { type Article, fetchArticle, rows, write } from './project.ts';

export const fields = ['title', 'summary', 'tags', 'thumbnail_url'] as const;
export type Field = (typeof fields)[number];

/** The article as it was seen last. */
export const opened = signal<Article | undefined>(undefined);
/** Values of the form that are not saved. */
export const draft = signal<Record<Field, string> | undefined>(undefined);
/** Whether another person has saved the article since the draft began. */
export const isCrossed = signal(false);
export const isBusy = signal(false);

let wanted = '';

/** Shows an article anew, or none. */
export function openArticle(id: string): void {
  wanted = id;
  opened.value = undefined;
  dropDraft();
}

export function dropDraft(): void {
  draft.value = undefined;
  isCrossed.value = false;
}

export const focusTitle = () => document.getElementById('article-title')?.focus();

/** Does what somebody asked for, one at a time, and tells when it is refused. */
export async function act(work: () => Promise<void>): Promise<void> {
  if (isBusy.value) return;
  isBusy.value = true;
  try {
    await work();
  } catch (error) {
    complain(error);
  } finally {
    isBusy.value = false;
  }
}

/** The text of the form as it is written. */
export const textOf = (article: Article): Record<Field, string> =>
  draft.value ?? (Object.fromEntries(fields.map((field) => [field, asText(article[field])])) as Record<Field, string>);

/** Returns the fields whose values in the form differ from the row. */
function editedFields(article: Article): Record<string, unknown> {
  const text = textOf(article);
  const tags = text.tags.split(',').map((tag) => tag.trim());
  const written = fields.map((field) => [
    field,
    field === 'tags' ? [...new Set(tags)].filter((tag) => tag !== '') : text[field].trim(),
  ]);
  return Object.fromEntries(
    written.filter(([field, value]) => asText(value).trim() !== asText(article[field as Field]).trim()),
  );
}

/** Returns the fields' values from before the edit that is under way. */
const fieldsBefore = ({ status_changes: changes }: Article) =>
  Object.fromEntries(Object.entries(changes ?? {}).map(([field, change]) => [field, change.old]));

/** Saves what is in the form, and goes on editing. */
export async function save(article: Article): Promise<void> {
  const changes = editedFields(article);
  if (Object.keys(changes).length === 0) say('There is nothing to save: the text is as it was.');
  else if (await put(article, changes)) say('Saved.');
}

/** Writes the next code, with the text that goes along. */
export async function move(article: Article, { to, text, told }: Move): Promise<void> {
  const along = text === 'before' ? fieldsBefore(article) : text === 'edited' ? editedFields(article) : {};
  if (!(await put(article, { ...along, status_code: to }))) return;
  say(told);
  focusTitle();
}

/** Writes to the article; false when somebody else was faster, which is told. */
async function put(seen: Article, changes: Record<string, unknown>): Promise<boolean> {
  const isWritten = await write(seen, changes);
  const article = await fetchArticle(seen.id);
  if (isWritten) dropDraft();
  else tellConflict(seen, article);
  opened.value = article;
  if (!isWritten) focusTitle();
  askNow();
  return isWritten;
}

/** Tells what somebody else has made of the article, and keeps the text that is being written here. */
function tellConflict(seen: Article, article: Article): void {
  const [last] = article.history;
  const isMoved = article.status_code !== seen.status_code || last?.id !== seen.history[0]?.id;
  isCrossed.value = draft.value !== undefined;
  complain(
    new Refusal(409, {
      message: isMoved
        ? `${person(last?.changed_by)} was faster: the article is ${codeName(article.status_code)} now.`
        : 'Somebody else has saved another text meanwhile.',
      hint: isCrossed.value ? 'Your own text is still here: see below.' : 'You see it as it is now.',
    }),
  );
}

type Seen = Pick<Article, 'status_code' | 'revision' | 'status_changed_at'>;

/** Looks whether somebody else has done something to the article, and tells it; resolves to what was seen. */
export async function look(id: string): Promise<Seen> {
  const seen = opened.value;
  if (!seen) {
    const article = await fetchArticle(id);
    if (wanted === id) opened.value = article;
    return article;
  }
  const [now] = await rows<Seen>('ingestion_queue', {
    id: `eq.${id}`,
    select: 'status_code,revision,status_changed_at',
  });
  const isOvertaken = () => opened.value !== seen || isBusy.value;
  if (isOvertaken()) return seen;
  if (!now) throw new Refusal(404, { message: 'Somebody has deleted this article.', hint: 'Go back to the list.' });
  const isText = now.status_changed_at === seen.status_changed_at;
  if (isText && now.revision === seen.revision) return now;
  const article = await fetchArticle(id);
  if (isOvertaken()) return seen;
  if (draft.value) tellConflict(seen, article);
  else if (isText) say('Somebody else has saved another text.');
  else say(`${person(article.history[0]?.changed_by)}: the article is ${codeName(article.status_code)} now.`);
  opened.value = article;
  return now;
}
