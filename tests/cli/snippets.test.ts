// The saved queries of Supabase's SQL editor come with init, follow an upgrade, and go with uninstall, but for those that a user edits.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { applyChanges } from '../../cli/project/change-set.ts';
import { shippedSnippets, snippetChanges, snippetDigests, uneditedSnippets } from '../../cli/project/snippets.ts';

type Written = { snippets: Record<string, string> };

const repository = path.join(import.meta.dirname, '..', '..');

/** A folder with all saved queries, and the manifest of the release that wrote them. */
function projectWithSnippets(): { root: string; manifest: Written } {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'snippets-'));
  onTestFinished(() => fs.rmSync(root, { recursive: true, force: true }));
  applyChanges(root, snippetChanges(root, null));
  return { root, manifest: { snippets: snippetDigests(repository) } };
}

test('each saved query of docs/dashboard.md is a file whose name any system can write, with a comment as its first line', () => {
  const { root } = projectWithSnippets();
  const names = fs.readdirSync(path.join(root, 'supabase', 'snippets', 'millrace'));
  expect(names.length).toBeGreaterThanOrEqual(10);
  for (const name of names) {
    expect(name).toMatch(/^[A-Za-z0-9 -]+\.sql$/);
    const text = fs.readFileSync(path.join(root, 'supabase', 'snippets', 'millrace', name), 'utf8');
    expect(text).toMatch(new RegExp(`^-- ${path.basename(name, '.sql')}\\n[\\s\\S]+;\\n$`));
  }
});

test('an upgrade renews the queries of the former release, and leaves those that a user edited or deleted', () => {
  const { root, manifest } = projectWithSnippets();
  const [former = '', edited = '', deleted = '', ...others] = Object.keys(shippedSnippets());
  const write = (file: string, text: string) => fs.writeFileSync(path.join(root, file), text);
  // The manifest knows the digest of the former text.
  write(former, shippedSnippets()[edited] ?? '');
  write(edited, 'select 1;\n');
  fs.rmSync(path.join(root, deleted));
  const gone = 'supabase/snippets/millrace/Gone.sql';
  write(gone, shippedSnippets()[edited] ?? '');
  const digest = manifest.snippets[edited] ?? '';
  const before = { snippets: { ...manifest.snippets, [former]: digest, [gone]: digest } };

  applyChanges(root, snippetChanges(root, before));
  const text = (file: string) => fs.readFileSync(path.join(root, file), 'utf8');
  expect(text(former)).toBe(shippedSnippets()[former]);
  expect(text(edited)).toBe('select 1;\n');
  expect(fs.existsSync(path.join(root, deleted))).toBe(false);
  expect(fs.existsSync(path.join(root, gone))).toBe(false);
  expect(uneditedSnippets(root, manifest).sort()).toEqual([former, ...others].sort());
});

test('a file of the same name that Millrace did not write stays', () => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'snippets-'));
  onTestFinished(() => fs.rmSync(root, { recursive: true, force: true }));
  const [file = ''] = Object.keys(shippedSnippets());
  fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  fs.writeFileSync(path.join(root, file), 'select 2;\n');
  expect(snippetChanges(root, null).map((change) => change.file)).not.toContain(file);
});
