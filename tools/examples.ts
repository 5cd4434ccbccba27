// The examples as `millrace init --example` writes them: what their functions import, but for the runtime, and their tables.
import fs from 'node:fs';
import path from 'node:path';
import type { Example } from '../cli/project/examples.ts';

/** The pipelines of each example; functions are named after them. */
const pipelinesOf: Record<string, string[]> = {
  leads: ['leads'],
  documents: ['documents', 'chunks', 'document-monolith'],
  links: ['links', 'link-sources'],
  articles: ['articles', 'sources', 'site-notices'],
  books: ['books', 'pages', 'toc'],
  embeddings: ['memos'],
};

/** Migrations that several examples bring, each of which may be applied twice. */
const sharedTables: Record<string, string[]> = { links: ['web_addresses'], articles: ['web_addresses'] };

/** The imports of a file of TypeScript, those of types included. */
const specifiers = /(?:\bfrom|\bimport|\bimport\(|import\.meta\.resolve\()\s*'([^']+)'/g;

/** Returns all examples, by name. */
export function readExamples(root: string): Record<string, Example> {
  const functions = path.join(root, 'supabase', 'functions');
  const { imports } = JSON.parse(fs.readFileSync(path.join(functions, 'deno.json'), 'utf8'));
  return Object.fromEntries(
    Object.entries(pipelinesOf).map(([name, pipelines]) => [name, readExample(root, name, pipelines, imports)]),
  );
}

function readExample(root: string, name: string, pipelines: string[], map: Record<string, string>): Example {
  const folder = path.join(root, 'supabase', 'functions');
  const ofPipeline = (entry: string) => pipelines.some((pipeline) => entry === pipeline || stageOf(pipeline, entry));
  const names = fs.readdirSync(folder).filter(ofPipeline);
  const definitions = [...pipelines, 'shared-limits'].map((pipeline) => `_pipelines/${pipeline}.ts`);
  const all = closure(folder, [...names.map((entry) => `${entry}/index.ts`), ...definitions]).files;
  const own = [...all].filter((file) => !file.startsWith('_millrace/')).sort();
  const mapped = (packages: Set<string>) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => [...packages].some((used) => isMapped(used, key))));
  const migrations = path.join(root, 'supabase', 'migrations');
  const isOf = (file: string) => [name, ...(sharedTables[name] ?? [])].some((part) => file.endsWith(`_${part}.sql`));
  const tables = fs.readdirSync(migrations).filter((file) => isOf(file) && !/_pipeline_/.test(file));
  if (tables.length === 0) throw new Error(`No migration has the tables of ${name}.`);
  return {
    files: Object.fromEntries(own.map((file) => [file, forUsers(fs.readFileSync(path.join(folder, file), 'utf8'))])),
    functions: Object.fromEntries(
      names.map((entry) => [entry, mapped(closure(folder, [`${entry}/index.ts`]).packages)]),
    ),
    tables: tables
      .sort()
      .map((file) => fs.readFileSync(path.join(migrations, file), 'utf8'))
      .join('\n'),
  };
}

const stageOf = (pipeline: string, entry: string) => entry.startsWith(`${pipeline}-`) && !entry.includes('.');

const isMapped = (used: string, key: string) => (key.endsWith('/') ? used.startsWith(key) : used === key);

/** Returns the files that these lead to, below `folder`, and the packages that those name. */
function closure(folder: string, entries: string[]): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const follow = (file: string) => {
    if (files.has(file)) return;
    files.add(file);
    for (const [, specifier = ''] of fs.readFileSync(path.join(folder, file), 'utf8').matchAll(specifiers)) {
      if (specifier.startsWith('.')) follow(path.posix.join(path.posix.dirname(file), specifier));
      else packages.add(specifier);
    }
  };
  entries.forEach(follow);
  return { files, packages };
}

/** Replaces the contributor's command by the one that a user has. */
const forUsers = (text: string) => text.replaceAll('npm run pipelines:sync', 'npx millrace sync');
