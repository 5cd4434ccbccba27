// Adds the optional packages of other platforms to package-lock.json: node tools/complete-lock-file.mjs
// npm leaves out what the registry in use does not carry, and "npm ci" then refuses the lock file on every platform. Such an
// entry has no integrity: npm adds it where it can download the package.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const lockFile = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', 'package-lock.json');
const systems = {
  android: 'android',
  darwin: 'darwin',
  freebsd: 'freebsd',
  linux: 'linux',
  win32: 'win32',
  windows: 'win32',
};
const processors = ['arm', 'arm64', 'riscv64', 'x64'];
const libraries = { musl: 'musl', glibc: 'glibc', gnu: 'glibc', gnueabihf: 'glibc' };

/** Returns where `name` is found from the package at `place`, as Node looks for it; undefined when the lock file has none. */
function placeOf(packages, place, name) {
  for (let folder = place; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
    const candidate = `${folder && `${folder}/`}node_modules/${name}`;
    if (packages[candidate]) return candidate;
    if (!folder) return undefined;
  }
}

/** Returns the entry of a package for another platform: its name says which; the rest is as in the entry for this one. */
function entryFor(name, range, sibling) {
  const words = name.split(/[^a-z0-9]+/);
  const system = words.map((word) => systems[word]).find(Boolean);
  const cpu = words.findLast((word) => processors.includes(word));
  const library = words.map((word) => libraries[word]).find(Boolean);
  if (!system || !cpu)
    throw new Error(`${name}: the name tells no platform. Add its entry to package-lock.json by hand.`);
  const libc = system === 'linux' ? (library ? [library] : sibling.libc) : undefined;
  return {
    version: range.replace(/^v/, ''),
    cpu: [cpu],
    ...(sibling.dev ? { dev: true } : {}),
    ...(libc ? { libc } : {}),
    license: sibling.license,
    optional: true,
    os: [system],
    ...(sibling.engines ? { engines: sibling.engines } : {}),
  };
}

const lock = JSON.parse(readFileSync(lockFile, 'utf8'));
const { packages } = lock;
const added = [];
for (const [place, { optionalDependencies = {} }] of Object.entries(packages)) {
  const present = Object.keys(optionalDependencies).map((name) => placeOf(packages, place, name));
  const sibling = packages[present.find((found) => found && packages[found].os)];
  for (const [name, range] of Object.entries(optionalDependencies)) {
    const found = placeOf(packages, place, name);
    // Another version at the top serves somebody else: this package has its own beside it.
    if (found && (packages[found].version === range || !/^\d/.test(range))) continue;
    if (!sibling) throw new Error(`${place}: not one of its optional packages is in package-lock.json.`);
    packages[found ? `${place}/node_modules/${name}` : `node_modules/${name}`] = entryFor(name, range, sibling);
    added.push(`${name}@${range}`);
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, 'en')));
writeFileSync(lockFile, `${JSON.stringify(lock, null, 2)}\n`);
console.log(added.length > 0 ? `Added ${added.join(', ')}.` : 'Nothing was missing.');
