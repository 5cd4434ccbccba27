import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { refuseMissingExtensions } from '../../local/platform/database/missing-extensions.ts';

function migration(text: string): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-extensions-'));
  fs.writeFileSync(path.join(folder, '20260101000000_first.sql'), text);
  return folder;
}

test('an extension that the stack does not have is named with its file and line, and the way out', async () => {
  const folder = migration(`create table public.t (id int);
-- Embeddings.
create extension if not exists vector with schema extensions;
`);
  await expect(refuseMissingExtensions(folder)).rejects.toThrow(
    /^20260101000000_first\.sql:3 creates the extension vector, which the local stack does not have\..*`apt-get install postgresql-\d+-pgvector` and `npx millrace dev --postgres \/usr\/lib\/postgresql\/\d+`.*npx supabase start[\s\S]*npx millrace connect/,
  );
});

test('an extension named in a comment or a text is none that a migration creates', async () => {
  const folder = migration(`-- create extension vector
select 'create extension vector';
create extension if not exists pg_net with schema extensions;`);
  await expect(refuseMissingExtensions(folder)).resolves.toBeUndefined();
});
