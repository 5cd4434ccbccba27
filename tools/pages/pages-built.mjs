// Tells whether the pages that are built are those of what stands in pages/. Plain JavaScript without dependencies, since
// bootstrap.mjs asks it.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { writeWhole } from '../engine/built.mjs';

/** The pages there are; they stand on the folder `base`. */
export const pageNames = ['operate', 'review', 'leads'];

const noteFile = path.join('.cache', 'pages-built');
const read = [
  'package-lock.json',
  'operators',
  path.join('packages', 'client'),
  'pages',
  path.join('docs', 'errors.md'),
  path.join('tools', 'pages'),
];
/** Folders that the build writes. */
const builtFolders = ['pages', path.join('packages', 'client')].map((folder) => path.join(folder, 'dist'));

/**
 * Where a page is built.
 * @param {string} root
 * @param {string} name
 */
export const builtPage = (root, name) => path.join(root, 'pages', 'dist', name);

/** @param {string} root @param {string} place @returns {string[]} */
function filesAt(root, place) {
  const whole = path.join(root, place);
  if (statSync(whole).isFile()) return [place];
  return readdirSync(whole, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .filter((file) => !builtFolders.some((folder) => file.startsWith(folder)));
}

/**
 * The digest of what the pages are built of.
 * @param {string} root
 */
export function pagesDigest(root) {
  const hash = createHash('sha256');
  for (const file of read.flatMap((place) => filesAt(root, place)).sort())
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(root, file)))
      .update('\0');
  return hash.digest('hex');
}

/**
 * Whether every page of the project `root` was built of what stands there now.
 * @param {string} root
 */
export function arePagesBuilt(root) {
  const note = path.join(root, noteFile);
  const areThere = pageNames.every((name) => existsSync(path.join(builtPage(root, name), 'index.html')));
  return areThere && existsSync(note) && readFileSync(note, 'utf8') === pagesDigest(root);
}

/**
 * Notes that the pages were built of what had the digest `source`.
 * @param {string} root
 * @param {string} source
 */
export function notePages(root, source) {
  mkdirSync(path.join(root, '.cache'), { recursive: true });
  writeWhole(path.join(root, noteFile), source);
}
