import path from 'node:path';
import process from 'node:process';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { scenariosOfOthers } from './tests/support/scenarios.ts';

/** What the commands have bundled, which Node loads as it does for users: Vite would parse a megabyte anew each time. */
const bundledDefinitions = [/\/millrace-\w+\/definitions\.mjs$/];

/** What all configurations share. */
export const common = {
  environment: 'node',
  pool: 'forks',
  // Most tests wait for processes, timers and the database rather than compute. With more files at a time than this, two cores have
  // whole stacks wait for one another beyond the bounds of their tests.
  maxWorkers: 3,
  // Longer than what the tests on whole stacks wait for themselves, so that what they tell at its end is seen.
  testTimeout: 160_000,
  hookTimeout: 160_000,
  server: { deps: { external: bundledDefinitions } },
  // On a machine that many share, a whole stack now and then meets a pause that no bound foresaw. .ci/run names what it took
  // two tries for. A property that does not hold for something drawn at random has no second try.
  retry: process.env.CI ? { count: 1, condition: /^(?!Property failed)/ } : 0,
} as const;

// These count what their process has used, some of them through the functions' own code, which does. The last gives its process a
// window, which openai would take for a browser's. Each file has a process to itself.
const counting = [
  ...['services', 'traces'].map((name) => `tests/docs/${name}.test.ts`),
  'tests/engine/alerts/alerts-arrive.test.ts',
  ...['budget', 'drain', 'drain-limits', 'job-poll', 'serve-stage'].map((name) => `tests/runtime/${name}.test.ts`),
  ...['extract-text', 'pdf', 'sample-documents', 'transcription-callbacks'].map(
    (name) => `tests/examples/${name}.test.ts`,
  ),
  'tests/stack/use-row.test.ts',
];
/**
 * How the processor time of a call grows with its text. A busy machine bends such a curve, so that `npm run soak` draws it, where
 * nothing else runs.
 */
export const growth = ['tests/engine/text-growth.test.ts', 'tests/examples/{book-growth,growth}.test.ts'];
const left = [
  ...['**/node_modules/**', 'tests/bench/**', 'tests/soak/**', 'tests/foreign/**', ...growth],
  ...scenariosOfOthers(process.env.SCENARIOS_OF_COMMIT),
];

const busyFolders = ['engine', 'docs'].map((folder) => path.join(import.meta.dirname, 'tests', folder, path.sep));

/**
 * Files that start whole stacks mostly wait, and those of the engine keep a core busy: they are dealt out evenly, so that neither
 * core idles. Files with a process to themselves come first: whatever stands behind one in the queue would lose its process.
 */
class BusyBesideWaiting extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const kinds = { alone: [], busy: [], waiting: [] } as Record<'alone' | 'busy' | 'waiting', TestSpecification[]>;
    for (const file of await super.sort(files)) {
      const isBusy = busyFolders.some((folder) => file.moduleId.startsWith(folder));
      kinds[file.project.name === 'counting' ? 'alone' : isBusy ? 'busy' : 'waiting'].push(file);
    }
    return [...kinds.alone, ...dealt(kinds.waiting, kinds.busy)];
  }
}

/** Two lists as one, each in its order and spread over all of it. */
function dealt<Item>(some: Item[], others: Item[]): Item[] {
  const placed = [some, others].flatMap((list) => list.map((item, n) => ({ item, place: (n + 0.5) / list.length })));
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item);
}

export const globalSetup = ['tests/support/global-setup.ts'];

export default defineConfig({
  test: {
    // One server for both projects.
    globalSetup,
    sequence: { sequencer: BusyBesideWaiting },
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
