// Tests about limits that stages share, which begin without those of the project's own pipelines.
import { test as base, type Engine } from '../engine.ts';

/** Vitest's test with a fresh `engine` that knows no shared limit. */
export const test = base.extend<{ engine: Engine }>({
  engine: async ({ engine }, use) => {
    await engine.sql.query(`
      update millrace.stages s set limits = nullif(s.limits - 'shared', '{}'), when_spent = 'wait'
      where s.limits ? 'shared';
      update millrace.limits set declared = declared - 'shared';
      delete from millrace.limits where name is not null`);
    await use(engine);
  },
});
