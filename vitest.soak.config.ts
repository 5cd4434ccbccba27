import { defineConfig } from 'vitest/config';
import { common, globalSetup, growth } from './vitest.config.ts';

const isChaos = process.argv.includes('chaos');

// `npm run soak`: what measures time, which needs a machine to itself, and the random hunts at a length that would hold up CI. SOAK_STEPS, SOAK_GRAPHS (random graphs, one session
// each), SOAK_SESSION_GRAPHS (random graphs, several sessions each), SOAK_CHAINS (random chains in one status column) and
// SOAK_UPGRADES set it further.
const hunts = {
  globalSetup,
  include: [
    ...growth,
    'tests/cli/{demo-articles,demo-books,demo-documents,demo-links,package,whole-way}.test.ts',
    'tests/foreign/**/*.test.ts',
    'tests/examples/{articles-pictures,embeddings,extract-text,pdf}.test.ts',
    'tests/faults/documents.test.ts',
    'tests/soak/{batch-prices,embeddings,reconnects}.test.ts',
    'tests/engine/deadlock-hunt.test.ts',
    'tests/engine/decisions/decisions-at-random.test.ts',
    'tests/engine/figures/figures-recount.test.ts',
    'tests/engine/limits/{gates,limits,shared-limits}-random.test.ts',
    'tests/engine/definitions/odd-names.test.ts',
    'tests/engine/random-*.test.ts',
    'tests/engine/status/status-random.test.ts',
    'tests/**/{model-schemas,split-text,tokens}.test.ts',
  ],
  testTimeout: 600_000,
  env: {
    SOAK: '1',
    SOAK_SESSIONS: '20',
    SOAK_STEPS: process.env.SOAK_STEPS ?? '1000',
    SOAK_GRAPHS: process.env.SOAK_GRAPHS ?? '3000',
    SOAK_SESSION_GRAPHS: process.env.SOAK_SESSION_GRAPHS ?? '300',
    SOAK_CHAINS: process.env.SOAK_CHAINS ?? '200',
    SOAK_FIGURES: process.env.SOAK_FIGURES ?? '30',
    SOAK_UPGRADES: process.env.SOAK_UPGRADES ?? '100',
  },
};

// `npm run soak -- chaos`: campaigns with faults, on a stack of their own. CHAOS_CAMPAIGNS says how many, CHAOS_SEED plays
// one again.
const chaos = {
  include: ['tests/soak/chaos.test.ts'],
  // A campaign's line is to be read as it comes.
  disableConsoleIntercept: true,
};

export default defineConfig({ test: { ...common, ...(isChaos ? chaos : hunts), silent: false } });
