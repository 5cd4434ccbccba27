// The contents of objects as files, one per version of an object.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

export interface Contents {
  write(version: string, content: Buffer): Promise<void>;
  /** Resolves to undefined where there is none. */
  read(version: string): Promise<Buffer | undefined>;
  copy(from: string, to: string): Promise<void>;
  remove(version: string): Promise<void>;
}

/** Keeps contents in `folder`. */
export function openContents(folder: string): Contents {
  fs.mkdirSync(folder, { recursive: true });
  const file = (version: string) => path.join(folder, version);
  return {
    async write(version, content) {
      const draft = file(`${version}.${randomUUID()}`);
      await fs.promises.writeFile(draft, content);
      await fs.promises.rename(draft, file(version));
    },
    async read(version) {
      try {
        return await fs.promises.readFile(file(version));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async copy(from, to) {
      await fs.promises.copyFile(file(from), file(to));
    },
    async remove(version) {
      await fs.promises.rm(file(version), { force: true });
    },
  };
}
