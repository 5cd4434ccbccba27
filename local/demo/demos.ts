import type { Arguments } from './read-arguments.ts';

type Demo = (given: Arguments, ending: AbortSignal) => Promise<number>;

/** Loads a demo only when it runs: each has libraries of its own, and an error of the arguments must come at once. */
export const demos: Record<Arguments['demo'], () => Promise<Demo>> = {
  articles: async () => (await import('./articles/run-articles.ts')).runArticles,
  books: async () => (await import('./books/run-books.ts')).runBooks,
  documents: async () => (await import('./documents/run-documents.ts')).runDocuments,
  leads: async () => (await import('./leads/run-leads.ts')).runLeads,
  links: async () => (await import('./links/run-links.ts')).runLinks,
};
