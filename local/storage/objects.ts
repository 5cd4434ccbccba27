// Buckets and objects as files: <folder>/<bucket>/bucket.json, and per object a content file and a note beside it.
// Files are named by a hash, so that an object's name may be anything.
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

export interface Bucket {
  id: string;
  name: string;
  public: boolean;
  file_size_limit: number | null;
  allowed_mime_types: string[] | null;
  created_at: string;
  updated_at: string;
}

export interface StoredObject {
  id: string;
  name: string;
  contentType: string;
  size: number;
  eTag: string;
  createdAt: string;
  updatedAt: string;
}

export class ObjectStore {
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    fs.mkdirSync(folder, { recursive: true });
  }

  buckets(): Bucket[] {
    const names = fs.readdirSync(this.folder).sort();
    return names.map((name) => readJson<Bucket>(path.join(this.folder, name, 'bucket.json')) as Bucket);
  }

  bucket(id: string): Bucket | undefined {
    return this.buckets().find((bucket) => bucket.id === id);
  }

  /** Returns undefined when there is a bucket of this name. */
  createBucket(id: string, settings: Partial<Bucket>): Bucket | undefined {
    if (this.bucket(id)) return undefined;
    const now = new Date().toISOString();
    const bucket: Bucket = {
      id,
      name: id,
      public: settings.public ?? false,
      file_size_limit: settings.file_size_limit ?? null,
      allowed_mime_types: settings.allowed_mime_types ?? null,
      created_at: now,
      updated_at: now,
    };
    fs.mkdirSync(this.bucketFolder(id));
    fs.writeFileSync(path.join(this.bucketFolder(id), 'bucket.json'), JSON.stringify(bucket));
    return bucket;
  }

  removeBucket(id: string): void {
    fs.rmSync(this.bucketFolder(id), { recursive: true });
  }

  /** Writes an object whole or not at all. */
  put(bucket: string, name: string, content: Buffer, contentType: string): StoredObject {
    const known = this.find(bucket, name);
    const now = new Date().toISOString();
    const object: StoredObject = {
      id: known?.id ?? randomUUID(),
      name,
      contentType,
      size: content.length,
      eTag: `"${createHash('md5').update(content).digest('hex')}"`,
      createdAt: known?.createdAt ?? now,
      updatedAt: now,
    };
    writeWhole(this.contentFile(bucket, name), content);
    writeWhole(this.noteFile(bucket, name), JSON.stringify(object));
    return object;
  }

  find(bucket: string, name: string): StoredObject | undefined {
    return readJson<StoredObject>(this.noteFile(bucket, name));
  }

  read(bucket: string, name: string): Buffer {
    return fs.readFileSync(this.contentFile(bucket, name));
  }

  /** Returns what was removed, undefined when there was nothing. */
  remove(bucket: string, name: string): StoredObject | undefined {
    const known = this.find(bucket, name);
    fs.rmSync(this.noteFile(bucket, name), { force: true });
    fs.rmSync(this.contentFile(bucket, name), { force: true });
    return known;
  }

  /** All objects of a bucket, by name. */
  objects(bucket: string): StoredObject[] {
    const folder = this.bucketFolder(bucket);
    const notes = fs.readdirSync(folder).filter((file) => file.endsWith('.note'));
    const objects = notes.map((file) => readJson<StoredObject>(path.join(folder, file)) as StoredObject);
    return objects.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  private bucketFolder(id: string): string {
    return path.join(this.folder, hashed(id));
  }

  private contentFile(bucket: string, name: string): string {
    return path.join(this.bucketFolder(bucket), `${hashed(name)}.content`);
  }

  private noteFile(bucket: string, name: string): string {
    return path.join(this.bucketFolder(bucket), `${hashed(name)}.note`);
  }
}

function hashed(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 40);
}

function writeWhole(file: string, content: Buffer | string): void {
  const draft = `${file}.${randomUUID()}`;
  fs.writeFileSync(draft, content);
  fs.renameSync(draft, file);
}

function readJson<T>(file: string): T | undefined {
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : undefined;
}
