import { defineConfig } from 'vitest/config';
import { common, globalSetup } from './vitest.config.ts';

// `npm run soak`: the random hunts at a length that would hold up CI. SOAK_STEPS, SOAK_GRAPHS (random graphs, one session
// each) and SOAK_SESSION_GRAPHS (random graphs, several sessions each) set it further.
export default defineConfig({
  test: {
    ...common,
    globalSetup,
    include: ['tests/engine/deadlock-hunt.test.ts', 'tests/engine/random-*.test.ts'],
    env: {
      SOAK_SESSIONS: '20',
      SOAK_STEPS: process.env.SOAK_STEPS ?? '1000',
      SOAK_GRAPHS: process.env.SOAK_GRAPHS ?? '3000',
      SOAK_SESSION_GRAPHS: process.env.SOAK_SESSION_GRAPHS ?? '300',
    },
    silent: false,
  },
});
