import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { applyChanges } from '../../cli/project/change-set.ts';

test('what another command has written since a text was made from it stays, and nothing is written', () => {
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
