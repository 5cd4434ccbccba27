// The saved queries for Supabase's SQL editor. docs/dashboard.md holds them, so that the page and the files never differ.
import fs from 'node:fs';
import path from 'node:path';
import { type Change, readText } from './change-set.ts';
import { digestOf, type Manifest, packageFolder } from './shipped.ts';

/** The Studio of `supabase start` lists the files of `supabase/snippets`, a folder each. */
export const snippetFolder = 'supabase/snippets/millrace';

/** The part of a manifest that knows which queries a release wrote. */
type Written = Pick<Manifest, 'snippets'>;

/**
 * The queries of docs/dashboard.md by the path of their file in a project. A query's first line is its title in a comment.
 *
 * @param root The folder that holds `docs`.
 */
export function shippedSnippets(root = packageFolder): Record<string, string> {
  const page = fs.readFileSync(path.join(root, 'docs', 'dashboard.md'), 'utf8');
  const queries = [...page.matchAll(/^```sql\n(-- ([^\n]+)\n[\s\S]*?)^```/gm)];
  return Object.fromEntries(queries.map(([, query = '', title]) => [`${snippetFolder}/${title}.sql`, query]));
}

/** Returns the digest of each saved query, for the manifest. */
export const snippetDigests = (root: string) =>
  Object.fromEntries(Object.entries(shippedSnippets(root)).map(([file, text]) => [file, digestOf(text)]));

/**
 * The changes that bring a project's saved queries to this release. A file that the user has edited or deleted stays as it is.
 *
 * @param before The manifest of the installed release; null where Millrace is new to the project.
 */
export function snippetChanges(root: string, before: Written | null): Change[] {
  const now = shippedSnippets();
  const known = before?.snippets ?? {};
  const isFree = (file: string) => !(file in known) && readText(path.join(root, file)) === null;
  const written = Object.entries(now)
    .filter(([file]) => isFree(file) || isUnedited(root, file, known[file]))
    .map(([file, text]) => ({ file, text }));
  const gone = Object.keys(known)
    .filter((file) => !(file in now) && isUnedited(root, file, known[file]))
    .map((file) => ({ file, text: null }));
  return [...written, ...gone];
}

/** Returns the saved queries of a project that are as `manifest`'s release wrote them. */
export const uneditedSnippets = (root: string, manifest: Written) =>
  Object.entries(manifest.snippets)
    .filter(([file, digest]) => isUnedited(root, file, digest))
    .map(([file]) => file);

function isUnedited(root: string, file: string, digest: string | undefined): boolean {
  const text = readText(path.join(root, file));
  return text !== null && digestOf(text) === digest;
}
