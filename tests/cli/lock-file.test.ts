import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

interface Entry {
  version?: string;
  resolved?: string;
  link?: boolean;
  optionalDependencies?: Record<string, string>;
}

const files = ['package-lock.json', 'tests/bench/package-lock.json'];

test.each(files)('%s holds the packages of all platforms, without which npm ci refuses it', (file) => {
  const text = fs.readFileSync(path.join(import.meta.dirname, '..', '..', file), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Record<string, Entry> };
  const nameOf = (place: string) => place.replace(/^.*node_modules\//, '');
  const held = Object.entries(packages).map(([place, { version }]) => `${nameOf(place)}@${version}`);
  const names = new Set(held.map((name) => name.replace(/@[^@]*$/, '')));
  expect(names.size).toBeGreaterThan(10);
  const wanted = Object.values(packages).flatMap((entry) => Object.entries(entry.optionalDependencies ?? {}));
  expect(wanted.filter(([name]) => !names.has(name))).toEqual([]);
  // One version of a package does not stand in for another.
  const exact = wanted.filter(([, range]) => /^v?\d+\.\d+\.\d+/.test(range));
  const exactNames = exact.map(([name, range]) => `${name}@${range.replace(/^v/, '')}`);
  expect(exactNames.filter((name) => !held.includes(name))).toEqual([]);
  // Each machine asks the registry that it is set up with. A workspace is a folder of the project.
  expect(Object.values(packages).filter(({ resolved, link }) => resolved && !link)).toEqual([]);
});
