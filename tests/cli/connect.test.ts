// `millrace connect` where the database cannot reach the address that the functions see.
import { Hono } from 'hono';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connect } from '../../cli/commands/connect.ts';
import { status } from '../../cli/operate/status.ts';
import { listen } from '../../local/services/http/listen.ts';
import { projectFolder } from './run-command.ts';

/** A project whose functions see `own`, and whose database reaches them at `reached` alone. Returns the addresses that were tried. */
async function serve(own: string, reached: string): Promise<string[]> {
  const tried: string[] = [];
  const app = new Hono();
  app.post('/functions/v1/millrace/connect', async (c) => {
    const { project_url = own } = await c.req.json<{ project_url?: string }>();
    tried.push(project_url);
    return c.json({ project_url, secret: 'an HMAC', wake_up: tried.length });
  });
  app.post('/rest/v1/rpc/millrace_wake_answer', (c) =>
    c.json(
      tried.at(-1) === reached
        ? { answered: true, status: 202, error: null, remedy: null }
        : { answered: true, status: null, error: 'Could not resolve hostname', remedy: 'correct the setting' },
    ),
  );
  app.post('/rest/v1/rpc/millrace_keep_page', (c) => c.json({ page_url: 'https://ops.test/' }));
  app.post('/rest/v1/rpc/millrace_health', (c) => c.json({ ok: true, faults: [], definitions: {} }));
  const server = await listen(app.fetch);
  vi.stubEnv('SUPABASE_URL', server.url);
  vi.stubEnv('SUPABASE_SECRET_KEY', 'sb_secret_one');
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await server.stop();
  });
  return tried;
}

const run = () => connect.run(['--workdir', projectFolder]);

test('connect takes the gateway at which a wake-up is answered, where the functions see another address', async () => {
  const tried = await serve('http://127.0.0.1:54321', 'http://api-gw:8000');
  expect(await run()).toContain(
    'The database wakes functions at http://api-gw:8000, with an HMAC; a wake-up was answered.',
  );
  expect(tried).toEqual(['http://127.0.0.1:54321', 'http://api.supabase.internal:8000', 'http://api-gw:8000']);
});

test('connect names the schema that the Data API does not serve', async () => {
  const app = new Hono();
  app.post('/rest/v1/rpc/:name', (c) => c.json({ code: 'PGRST106', message: 'The schema must be one of: api' }, 406));
  app.post('/functions/v1/millrace/connect', (c) => c.json({ project_url: '', secret: 'an HMAC', wake_up: 1 }));
  const server = await listen(app.fetch);
  onTestFinished(() => server.stop());
  vi.stubEnv('SUPABASE_URL', server.url);
  vi.stubEnv('SUPABASE_SECRET_KEY', 'sb_secret_one');
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const command of [connect, status]) {
    await expect(command.run(['--workdir', projectFolder])).rejects.toThrow(
      `The Data API of ${server.url} does not serve the schema public`,
    );
  }
});

test('connect leaves the functions’ own address where no gateway answers, and tries none for a hosted project', async () => {
  const local = await serve('http://functions:8000', 'nowhere');
  await expect(run()).rejects.toThrow('The database knows its functions at http://functions:8000, but cannot reach');
  expect([local.length, local.at(-1)]).toEqual([5, 'http://functions:8000']);
  const hosted = await serve('https://abc.supabase.co', 'nowhere');
  await expect(run()).rejects.toThrow('cannot reach that address (Could not resolve hostname)');
  expect(hosted).toEqual(['https://abc.supabase.co']);
});
