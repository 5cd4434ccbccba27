import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'tests/bench/**', 'tests/soak/**'],
    environment: 'node',
    globalSetup: ['tests/support/global-setup.ts'],
    pool: 'forks',
    // Most tests wait for processes and timers rather than compute.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // What a passing test prints on the way would bury what a failing one says.
    silent: 'passed-only',
  },
});
