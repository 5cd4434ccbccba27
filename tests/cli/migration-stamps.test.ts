import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { futureStamps } from '../../cli/migration-stamps.ts';
import { projectFolder } from './run-command.ts';

it('holds each migration of the project to a stamp that has passed, so that whoever adds one comes after it', () => {
  expect(futureStamps(fs.readdirSync(path.join(projectFolder, 'supabase', 'migrations')), Date.now())).toEqual([]);
});

it('futureStamps() names each migration that is stamped later than now in UTC, with the remedy', () => {
  const names = ['20261123235959_past.sql', '20261124000000_now.sql', '20261124000001_future.sql', 'README.md'];
  const [fault, ...others] = futureStamps(names, Date.UTC(2026, 10, 24));
  expect(fault).toMatch(/^supabase\/migrations\/20261124000001_future\.sql is stamped in the future .*: rename it/);
  expect(others).toEqual([]);
});
