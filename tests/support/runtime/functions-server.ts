// The platform's /functions/v1 for one test: stages' functions behind real HTTP, all over one `rpc`.
import { Hono } from 'hono';
import { onTestFinished } from 'vitest';
import { listen } from '../../../local/services/http/listen.ts';
import type { Rpc } from '../../../supabase/functions/_millrace/engine/engine-client.ts';
import { answerRequests } from '../../../supabase/functions/_millrace/serve-stage.ts';
import type { Env } from '../../../supabase/functions/_millrace/settings.ts';
import type { Stage } from '../../../supabase/functions/_millrace/stage/stage.ts';

/**
 * Serves the stages under the names of their functions. `env` is what all functions read: with the project's own address
 * and key once the server listens. `stages` may be exchanged while it runs; `settled` resolves when nothing is left to do
 * in the background.
 */
export async function serveFunctions(options: { stages: Stage[]; rpc: Rpc; env?: Env }) {
  const env: Env = { SUPABASE_SERVICE_ROLE_KEY: 'k', ...options.env };
  const working: Promise<unknown>[] = [];
  const served = { stages: options.stages };
  const app = new Hono();
  app.all('/functions/v1/:name', async (c): Promise<Response> => {
    const stage = served.stages.find(({ definition }) => definition.function === c.req.param('name'));
    if (!stage) return c.json({ message: 'Function not found' }, 404);
    const answer = answerRequests(
      stage,
      env,
      (work) => void working.push(work),
      () => options.rpc,
    );
    return answer(c.req.raw);
  });
  const server = await listen(app.fetch);
  onTestFinished(() => server.stop());
  env.SUPABASE_URL = server.url;
  return { env, served, settled: () => Promise.all(working) };
}
