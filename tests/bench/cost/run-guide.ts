// Rows through the queue of Supabase's guide, on a stack without the engine.
import fs from 'node:fs';
import path from 'node:path';
import { onAStack } from '../on-a-stack.ts';
import type { Values } from '../results.ts';
import { watchStack } from '../stack-usage.ts';
import { until } from '../until.ts';

/** Measures so many rows, each of which waits so long for somebody. */
export function measure({ rows, waitMs }: { rows: number; waitMs: number }): Promise<Values> {
  const functionsDir = path.join(import.meta.dirname, 'functions');
  return onAStack({ functionsDir, migrations: false, services: false }, async (stack, client) => {
    await client.query(fs.readFileSync(path.join(import.meta.dirname, 'guide.sql'), 'utf8'));
    const watch = watchStack(stack, ['cost-guide']);
    const began = performance.now();
    await client.query(
      `insert into public.guide_queue (message) select jsonb_build_object('wait_ms', $2::int) from generate_series(1, $1::int)`,
      [rows, waitMs],
    );
    await client.query(
      `select cron.schedule('guide', '10 seconds', format('select public.guide_process(%L)', $1::text))`,
      [stack.apiUrl],
    );
    const empty = 'select not exists (select from public.guide_queue) as met';
    await until(client, 'the queue is empty', empty, { patienceMs: 900_000, everyMs: 250 });
    const { invocations } = watch.end();
    return { rows, seconds: (performance.now() - began) / 1000, invocations };
  });
}
