import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { applyChanges } from '../../cli/project/change-set.ts';
import type { Project } from '../../cli/project/find-project.ts';
import { writeChanges } from '../../cli/project/write-changes.ts';

test('a file that another command has changed since it was read stays, and nothing is written', () => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'change-set-'));
  onTestFinished(() => fs.rmSync(root, { recursive: true }));
  fs.writeFileSync(path.join(root, 'config.toml'), 'of another');
  const added = { file: 'functions/own/index.ts', text: 'own' };
  expect(() => applyChanges(root, [added, { file: 'config.toml', text: 'ours', from: 'as it was' }])).toThrow(
    'Nothing was written: config.toml was changed meanwhile, by another command or an editor: run this again.',
  );
  expect(() => applyChanges(root, [added, { file: 'config.toml', text: 'ours', from: null }])).toThrow('meanwhile');
  expect(fs.readdirSync(root)).toEqual(['config.toml']);
  applyChanges(root, [added, { file: 'config.toml', text: 'ours', from: 'of another' }]);
  expect(fs.readFileSync(path.join(root, 'config.toml'), 'utf8')).toBe('ours');
});

test('the summary counts the runtime’s files: 1 file, 2 files', () => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'change-set-'));
  onTestFinished(() => fs.rmSync(root, { recursive: true }));
  const told = (dryRun: boolean, ...names: string[]) => {
    const changes = names.map((name) => ({ file: `supabase/functions/_millrace/${name}.ts`, text: name }));
    return stripVTControlCharacters(writeChanges({ root } as Project, changes, { 'dry-run': dryRun, json: false }, ''));
  };
  expect(told(true, 'a')).toContain('_millrace: 1 file, all new\n');
  expect(told(true, 'a', 'b')).toContain('_millrace: 2 files, all new\n');
  expect(told(false, 'a')).toContain('_millrace (1 file)');
  expect(told(false, 'b', 'c')).toContain('_millrace (2 files)');
});
