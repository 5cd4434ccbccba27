// A project that the supabase CLI made and that has installed the tarballs, for tests that run the package's commands.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { installPacked } from './packed.ts';

export class PackedProject {
  /** Holds the project, and other folders beside it. */
  readonly folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-package-'));
  readonly place = path.join(this.folder, 'app');
  readonly bin = path.join(this.place, 'node_modules', '.bin', 'millrace');
  tarball = '';

  /** Makes it before the tests of a file, and removes it after them. */
  constructor() {
    beforeAll(async () => {
      // Where root runs this, the database is another user's.
      fs.chmodSync(this.folder, 0o711);
      fs.mkdirSync(this.place);
      const { millrace, begun } = await installPacked(this.place);
      this.tarball = millrace;
      fs.cpSync(begun, this.place, { recursive: true });
    });
    afterAll(() => fs.rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Runs a command of the package. */
  readonly millrace = (...args: string[]) => {
    const { PATH, HOME, GOGC, DENO_V8_FLAGS } = process.env;
    const { status, stdout, stderr } = spawnSync(this.bin, args, {
      cwd: this.place,
      encoding: 'utf8',
      // Far more than any takes: one that never ends fails its test.
      timeout: 150_000,
      // Deno's cache is at home. The others are how .ci/run spares the processor.
      env: { PATH, HOME, GOGC, DENO_V8_FLAGS },
    });
    return { status, stdout, stderr };
  };

  /** All files of the project's own, or of another, with their texts. */
  readonly filesOf = (place = this.place): Record<string, string> => {
    const found = fs.readdirSync(place, { recursive: true, withFileTypes: true });
    const files = found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
    return Object.fromEntries(
      files
        .map((file) => [path.relative(place, file), file] as const)
        .filter(([name]) => !name.startsWith('node_modules') && !name.startsWith('package'))
        .map(([name, file]) => [name, fs.readFileSync(file, 'utf8')]),
    );
  };

  /** A folder with these files beside the project, which uses its commands. */
  readonly folderWith = (files: Record<string, string>): string => {
    const place = fs.mkdtempSync(path.join(this.folder, 'other-'));
    for (const [name, text] of Object.entries(files)) write(place, name, text);
    return place;
  };
}

export function write(place: string, name: string, text: string): void {
  fs.mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
  fs.writeFileSync(path.join(place, name), text);
}

/** A table as Supabase's guides have it. */
export const tables = `create table public.tickets (id bigint generated always as identity primary key, body text);
alter table public.tickets enable row level security;
revoke all on public.tickets from anon, authenticated, service_role;
grant select, insert, update, delete on public.tickets to service_role;
`;
