import { expect } from 'vitest';
import { workerSettings } from '../../supabase/functions/_millrace/settings.ts';
import { test } from '../support/engine.ts';

test('a handler may take as long as its stage allows when its worker has started, with the settings as they are', async ({
  engine,
}) => {
  const { WORKER_SECONDS } = workerSettings.parse({});
  const tooLong = await engine.rows(
    `select p.name as pipeline, s.name as stage, s.timeout::text from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id
     where s.timeout > $1 * interval '1 second' order by 1, 2`,
    [WORKER_SECONDS - 5],
  );
  expect(tooLong).toEqual([]);
});
