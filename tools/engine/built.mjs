// Tells whether what is built of engine/ is up to date. Plain JavaScript without dependencies, since bootstrap.mjs asks it.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Holds the digests of what was read and written when it was built last. */
const noteFile = path.join('.cache', 'engine-built');

/** @param {string} root @param {string[]} files */
function digest(root, files) {
  const hash = createHash('sha256');
  for (const file of files.sort())
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(root, file)))
      .update('\0');
  return hash.digest('hex');
}

/** @param {string} root @param {string} folder */
const filesIn = (root, folder) =>
  readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));

const uninstall = path.join('engine', 'uninstall.sql');

/**
 * The digest of what is read to build.
 * @param {string} root
 */
export function inputDigest(root) {
  // The list of public functions decides which comments are stored.
  const surface = path.join('tools', 'check', 'public-surface.ts');
  const read = ['package.json', surface, ...filesIn(root, 'engine'), ...filesIn(root, path.join('tools', 'engine'))];
  return digest(
    root,
    read.filter((file) => file !== uninstall),
  );
}

/** @param {string} root */
function builtDigest(root) {
  const migrations = filesIn(root, path.join('supabase', 'migrations')).filter((name) =>
    name.endsWith('_millrace.sql'),
  );
  return digest(root, [...migrations, ...(existsSync(path.join(root, uninstall)) ? [uninstall] : [])]);
}

/**
 * Whether all that is built in the project `root` was built of what stands there now, and has not been touched since.
 * @param {string} root
 */
export function isBuilt(root) {
  const note = path.join(root, noteFile);
  return existsSync(note) && readFileSync(note, 'utf8') === `${inputDigest(root)} ${builtDigest(root)}`;
}

/**
 * Notes that all is built of what had the digest `source`.
 * @param {string} root
 * @param {string} source
 */
export function noteBuilt(root, source) {
  mkdirSync(path.join(root, '.cache'), { recursive: true });
  writeWhole(path.join(root, noteFile), `${source} ${builtDigest(root)}`);
}

/**
 * Writes a file such that nobody reads half of it, though others write the same meanwhile.
 * @param {string} file
 * @param {string} text
 */
export function writeWhole(file, text) {
  const part = `${file}.${process.pid}`;
  writeFileSync(part, text);
  renameSync(part, file);
}
