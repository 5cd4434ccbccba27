import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const light = [
  'tests/engine/**/*.test.ts',
  'tests/docs/**/*.test.ts',
  'tests/examples/{books-table,documents-tables,example-lengths}.test.ts',
];

/** What all projects share. */
export const common = {
  environment: 'node',
  pool: 'forks',
  // Most tests wait for processes, timers and the database rather than compute.
  maxWorkers: 3,
  testTimeout: 30_000,
  hookTimeout: 60_000,
} as const;

/** The long files first, which start whole stacks, so that the short ones fill up the end. */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLight = (file: TestSpecification) => file.project.name === 'light';
    return [...sorted.filter((file) => !isLight(file)), ...sorted.filter(isLight)];
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
      {
        test: {
          ...common,
          name: 'parts',
          include: ['tests/**/*.test.ts'],
          exclude: ['**/node_modules/**', 'tests/bench/**', 'tests/soak/**', ...light],
        },
      },
      // These keep no state outside their databases, so that one process can run many of them and loads the rest once.
      { test: { ...common, name: 'light', include: light, isolate: false } },
    ],
  },
});
