import path from 'node:path';
import { fileTypeFromBuffer } from 'file-type';
import { type DocumentFile, sampleDocuments } from '../documents/sample-documents.ts';
import type { Stack } from '../stack.ts';
import { readFileNamed } from './read-file.ts';
import { stackClient } from './stack-client.ts';

/** A file to upload, with what its row says of it. */
export interface DocumentSource extends DocumentFile {
  organisation: string;
  platform: string;
  /** Whether the pipeline must bring it to the end; one sample is broken on purpose. */
  shouldSucceed: boolean;
}

/** An uploaded document. */
export interface AddedDocument {
  id: string;
  name: string;
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
  for (const file of files) {
    try {
      const bytes = readFileNamed(file, 'Name files, of any kind.');
      const mediaType = (await fileTypeFromBuffer(bytes))?.mime ?? 'text/plain';
      const origin = { organisation: 'org_demo', platform: 'upload' };
      sources.push({ name: path.basename(file), bytes, mediaType, ...origin, shouldSucceed: true });
    } catch (error) {
      faults.push((error as Error).message);
    }
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return sources;
}

/** Uploads the files and inserts their rows, as an application does. What Storage refuses is told with its reason. */
export async function addDocuments(
  sources: DocumentSource[],
  stack: Stack,
): Promise<{ added: AddedDocument[]; refused: { name: string; reason: string }[] }> {
  const { rows, storage } = stackClient(stack);
  const added: AddedDocument[] = [];
  const refused: { name: string; reason: string }[] = [];
  for (const { name, bytes, mediaType, organisation, platform } of sources) {
    const id = crypto.randomUUID();
    const source_path = `${organisation}/${id}${/\.\w{1,8}$/.exec(name)?.[0] ?? ''}`;
    const file = new Blob([new Uint8Array(bytes)], { type: mediaType });
    const { error } = await storage.from('documents').upload(source_path, file, { contentType: mediaType });
    if (error) {
      const size = (bytes.length / 1024 / 1024).toFixed(1);
      refused.push({ name, reason: `Storage did not take it, of ${size} MB: ${error.message}` });
      continue;
    }
    const metadata = { source_name: name, source_platform: platform, clerk_org_id: organisation };
    const inserted = await rows.from('document').insert({ id, source_path, metadata });
    if (inserted.error) throw new Error(`The row of ${name} was not inserted: ${inserted.error.message}.`);
    added.push({ id, name });
  }
  return { added, refused };
}
