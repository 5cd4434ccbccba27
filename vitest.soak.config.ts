import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

// `npm run soak`: the random hunts at a length that would hold up CI. SOAK_STEPS sets it further.
export default defineConfig({
  test: {
    ...base.test,
    include: ['tests/engine/deadlock-hunt.test.ts'],
    env: { SOAK_SESSIONS: '20', SOAK_STEPS: process.env.SOAK_STEPS ?? '1000' },
    silent: false,
  },
});
