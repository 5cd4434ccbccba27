import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** An article of the sample news site. */
export interface NewsArticle {
  /** The last part of its address. */
  slug: string;
  title: string;
  /** The day it appeared, such as 2026-08-03. */
  date: string;
  author: string;
  /** The subject of the article; `other` is none of the topics. */
  section: 'gardens' | 'repair' | 'other';
  /** A file under /images/; some of them cannot be used. */
  image: string | null;
  paragraphs: string[];
}

const folder = new URL('./articles/', import.meta.url);

/** Resolves to all articles, the newest first. */
export async function readArticles(): Promise<NewsArticle[]> {
  const files = (await readdir(fileURLToPath(folder))).filter((file) => file.endsWith('.md'));
  const articles = await Promise.all(
    files.map(async (file) => readArticle(file.slice(0, -3), await readFile(new URL(file, folder), 'utf8'))),
  );
  return articles.sort((one, other) => other.date.localeCompare(one.date) || one.slug.localeCompare(other.slug));
}

function readArticle(slug: string, text: string): NewsArticle {
  const [head = '', ...paragraphs] = text.trim().split(/\n\s*\n/);
  const fields = Object.fromEntries(head.split('\n').map((line) => line.split(/:\s*(.*)/s).slice(0, 2)));
  const { title, date, author, section } = fields as Record<string, string>;
  if (!title || !date || !author || !(section === 'gardens' || section === 'repair' || section === 'other')) {
    throw new Error(`${slug}.md needs title, date, author and a section: gardens, repair or other`);
  }
  return { slug, title, date, author, section, image: fields.image || null, paragraphs };
}
