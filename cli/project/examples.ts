// The examples that the package ships, as code for a project.
import fs from 'node:fs';
import path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { CommandError } from '../command-error.ts';
import type { Change } from './change-set.ts';
import { readText } from './change-set.ts';
import type { Project } from './find-project.ts';
import { type Manifest, packageFolder } from './shipped.ts';

/** One example. */
export interface Example {
  /** Its files, by their path in `supabase/functions`. */
  files: Record<string, string>;
  /** The imports that the deno.json of each function maps, by the function's name. */
  functions: Record<string, Record<string, string>>;
  /** The migration that makes its tables. */
  tables: string;
}

export const exampleNames = ['leads', 'documents', 'links', 'articles', 'books', 'embeddings'];

/** Returns the example of this name. Throws a CommandError where there is none. */
export function readExample(name: string): Example {
  if (!exampleNames.includes(name)) {
    throw new CommandError(`There is no example ${name}: choose one of ${exampleNames.join(', ')}.`, 2);
  }
  const packed = fs.readFileSync(path.join(packageFolder, 'dist', 'examples.json.br'));
  return JSON.parse(brotliDecompressSync(packed).toString())[name];
}

/** The example's functions as files of the project. Throws a CommandError that names the files that are there and differ. */
export function exampleFiles(project: Project, example: Example, manifest: Manifest): Change[] {
  const maps = Object.entries(example.functions).map(([name, imports]) => [
    `${name}/deno.json`,
    `${JSON.stringify({ imports: { ...manifest.imports, ...imports } }, null, 2)}\n`,
  ]);
  const texts = [...Object.entries(example.files), ...maps] as [string, string][];
  const changes = texts.map(([file, text]) => ({ file: `supabase/functions/${file}`, text }));
  const others = changes.filter(({ file, text }) => ![null, text].includes(readText(path.join(project.root, file))));
  if (others.length > 0) {
    const files = others.map(({ file }) => file).join(', ');
    throw new CommandError(`${files} is there and says something else than the example: move it away.`);
  }
  return changes;
}
