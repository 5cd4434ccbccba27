// ARCHITECTURE.md is a map: what it names is there, and it stays short enough to be read.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const project = path.join(import.meta.dirname, '..', '..');
const map = readFileSync(path.join(project, 'ARCHITECTURE.md'), 'utf8');

test('each file that the map names is there', () => {
  const folders = ['engine', 'supabase/functions', 'local', 'cli', 'tools', 'pages'];
  const files = folders.flatMap((folder) =>
    (readdirSync(path.join(project, folder), { recursive: true }) as string[]).map((file) => `/${folder}/${file}`),
  );
  const named = [...map.matchAll(/(?<![\w.*-])[\w-][\w/.-]*\.(?:sql|ts|md)\b/g)].map(([name]) => name);
  const gone = named.filter(
    (name) => !existsSync(path.join(project, name)) && !files.some((file) => file.endsWith(`/${name}`)),
  );
  expect(named.length).toBeGreaterThan(30);
  expect(gone).toEqual([]);
});

test('the map has at most 20 kB', () => {
  expect(Buffer.byteLength(map)).toBeLessThanOrEqual(20_480);
});
