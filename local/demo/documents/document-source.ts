import path from 'node:path';
import { fileTypeFromBuffer } from 'file-type';
import type { Stack } from '../../platform/stack.ts';
import { readFileNamed } from '../read-file.ts';
import { type DocumentFile, sampleDocuments } from '../samples/documents/sample-documents.ts';
import { stackClient } from '../stack-client.ts';

/** A file to upload, with what its row says of it. */
export interface DocumentSource extends DocumentFile {
  organisation: string;
  platform: string;
  /** Whether the pipeline must bring it to the end; one sample is broken on purpose. */
  shouldSucceed: boolean;
}

const trust = 'org_wendle_canal_trust';
/** Where the samples come from. The council's knowledge graph is its own, though it knows the same names. */
const origins: Record<string, { organisation: string; platform: string }> = {
  'council-minutes.docx': { organisation: 'org_ostrey_council', platform: 'email' },
  'newsletter.html': { organisation: trust, platform: 'website' },
};

/** The sample documents and a broken one, or the named files. Throws an error that names all files that cannot be had. */
export async function readDocumentSources(files: string[]): Promise<DocumentSource[]> {
  if (files.length === 0) {
    const samples = await sampleDocuments();
    const halves = samples.slice(0, 1).map((file) => ({
      ...file,
      name: 'broken-upload.pdf',
      bytes: file.bytes.slice(0, 400),
      organisation: trust,
      platform: 'email',
      shouldSucceed: false,
    }));
    const whole = samples.map((file) => ({
      ...file,
      ...(origins[file.name] ?? { organisation: trust, platform: 'upload' }),
      shouldSucceed: true,
    }));
    return [...whole, ...halves];
  }
  const faults: string[] = [];
  const sources: DocumentSource[] = [];
  const names = tellApart(files);
  for (const [at, file] of files.entries()) {
    try {
      const bytes = readFileNamed(file, 'Name files, of any kind.');
      const mediaType = (await fileTypeFromBuffer(bytes))?.mime ?? 'text/plain';
      const origin = { organisation: 'org_demo', platform: 'upload' };
      sources.push({ name: names[at] ?? file, bytes, mediaType, ...origin, shouldSucceed: true });
    } catch (error) {
      faults.push((error as Error).message);
    }
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return sources;
}

/** Returns the files' own names; those that share one have as many of their folders before it as it takes to tell them apart. */
export function tellApart(files: string[]): string[] {
  const paths = files.map((file) => path.normalize(file).split(path.sep));
  const endOf = (parts: string[], length: number) => parts.slice(-length).join('/');
  return paths.map((parts) => {
    const others = paths.filter((other) => other.join() !== parts.join());
    let length = 1;
    while (length < parts.length && others.some((other) => endOf(other, length) === endOf(parts, length))) length++;
    return endOf(parts, length);
  });
}

/** Uploads the files and inserts their rows, as an application does. Resolves to what Storage refused, with its reason. */
export async function addDocuments(
  sources: DocumentSource[],
  stack: Stack,
): Promise<{ name: string; reason: string }[]> {
  const { rows, storage } = stackClient(stack);
  const refused: { name: string; reason: string }[] = [];
  for (const { name, bytes, mediaType, organisation, platform } of sources) {
    const id = crypto.randomUUID();
    const source_path = `${organisation}/${id}${/\.\w{1,8}$/.exec(name)?.[0] ?? ''}`;
    const file = new Blob([new Uint8Array(bytes)], { type: mediaType });
    const { error } = await storage.from('documents').upload(source_path, file, { contentType: mediaType });
    if (error) {
      const { data: bucket } = await storage.getBucket('documents');
      refused.push({ name, reason: whyRefused(bytes.length, bucket?.file_size_limit, error.message) });
      continue;
    }
    const metadata = { source_name: name, source_platform: platform, clerk_org_id: organisation };
    const inserted = await rows.from('document').insert({ id, source_path, metadata });
    if (inserted.error) throw new Error(`The row of ${name} was not inserted: ${inserted.error.message}.`);
  }
  return refused;
}

/** Returns why Storage did not take a file of this many bytes, and what to do. */
export function whyRefused(bytes: number, limit: number | null | undefined, message: string): string {
  const size = (bytes / 1024 / 1024).toFixed(1);
  if (!limit || bytes <= limit) return `Storage did not take it, of ${size} MB: ${message}.`;
  return (
    `it has ${size} MB, and the bucket documents takes at most ${limit / 1024 / 1024} MB a file ` +
    '(its file_size_limit): split it, and name its parts.'
  );
}
