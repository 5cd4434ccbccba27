import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

interface Entry {
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

const files = ['package-lock.json', 'tests/bench/package-lock.json'];

test.each(files)('%s holds the packages of all platforms, without which npm ci refuses it', (file) => {
  const text = fs.readFileSync(path.join(import.meta.dirname, '..', '..', file), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Record<string, Entry> };
  const names = new Set(Object.keys(packages).map((place) => place.replace(/^.*node_modules\//, '')));
  expect(names.size).toBeGreaterThan(10);
  const wanted = Object.values(packages).flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}));
  expect(wanted.filter((name) => !names.has(name))).toEqual([]);
  const registries = Object.values(packages).flatMap(({ resolved }) => (resolved ? [new URL(resolved).host] : []));
  expect(registries.filter((host) => host !== 'registry.npmjs.org')).toEqual([]);
});
