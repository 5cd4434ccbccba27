import path from 'node:path';
import process from 'node:process';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What all configurations share. */
export const common = {
  environment: 'node',
  pool: 'forks',
  // Most tests wait for processes, timers and the database rather than compute.
  maxWorkers: 3,
  // Longer than what the tests on whole stacks wait for themselves, so that what they tell at its end is seen.
  testTimeout: 160_000,
  hookTimeout: 160_000,
  // On a machine that many share, a whole stack now and then meets a pause that no bound foresaw. .ci/run names what it took
  // two tries for. A property that does not hold for something drawn at random has no second try.
  retry: process.env.CI ? { count: 1, condition: /^(?!Property failed)/ } : 0,
} as const;

// These count what their process has used, some of them through the functions' own code, which does: each file has a process to
// itself.
const counting = [
  'tests/docs/services.test.ts',
  'tests/engine/alerts-arrive.test.ts',
  ...['budget', 'drain', 'drain-limits', 'job-poll', 'serve-stage'].map((name) => `tests/runtime/${name}.test.ts`),
  ...['book-growth', 'extract-text', 'growth', 'pdf', 'sample-documents', 'transcription-callbacks'].map(
    (name) => `tests/examples/${name}.test.ts`,
  ),
];
const left = ['**/node_modules/**', 'tests/bench/**', 'tests/soak/**'];

const short = ['engine', 'docs'].map((folder) => path.join(import.meta.dirname, 'tests', folder, path.sep));

/** The long files first, which start whole stacks, so that the short ones fill up the end. */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isShort = (file: TestSpecification) => short.some((folder) => file.moduleId.startsWith(folder));
    return [...sorted.filter((file) => !isShort(file)), ...sorted.filter(isShort)];
  }
}

export const globalSetup = ['tests/support/global-setup.ts'];

export default defineConfig({
  test: {
    // One server for both projects.
    globalSetup,
    sequence: { sequencer: LongFilesFirst },
    // What a passing test prints on the way would bury what a failing one says.
    silent: 'passed-only',
    projects: [
      { test: { ...common, name: 'counting', include: counting, exclude: left } },
      // The others keep no state in their process, so that one runs many of them and loads what they share once.
      {
        test: {
          ...common,
          name: 'shared',
          isolate: false,
          include: ['tests/**/*.test.ts'],
          exclude: [...left, ...counting],
        },
      },
    ],
  },
});
