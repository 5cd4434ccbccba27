import { expect, test } from 'vitest';
import { obstacle } from '../../local/platform/obstacle.ts';

const linux = { platform: 'linux-x64', hasGlibc: true, hasPostgrest: false };
const wayOut =
  /npx supabase start[\s\S]*Docker[\s\S]*SUPABASE_EXPERIMENTAL_STACK=1 npx supabase start --runtime native[\s\S]*npx millrace connect/;

test.each([
  ['Windows', { ...linux, platform: 'win32-x64' }, 'WSL 2'],
  ['a Linux with musl', { ...linux, hasGlibc: false }, 'glibc'],
  ['Apple silicon without PostgREST', { ...linux, platform: 'darwin-arm64' }, 'brew install postgrest'],
  ['a processor that nobody builds Postgres for', { ...linux, platform: 'linux-riscv64' }, 'linux-riscv64'],
])('%s is told why the stack does not run there, and the way out', (_, machine, named) => {
  expect(obstacle(machine)).toContain(named);
  expect(obstacle(machine)).toMatch(wayOut);
});

test('Linux with glibc, and Apple silicon with a PostgREST of its own, have no obstacle', () => {
  expect(obstacle(linux)).toBeUndefined();
  expect(obstacle({ platform: 'darwin-arm64', hasGlibc: false, hasPostgrest: true })).toBeUndefined();
});
