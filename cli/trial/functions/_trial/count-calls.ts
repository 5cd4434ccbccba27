// Counts the calls of a function in the table trial_calls, since nothing tells a project's owner of them within minutes. Imported
// before all else, so that the function's own call of Deno.serve meets it.
interface Platform {
  Deno?: { serve(handler: (request: Request) => Promise<Response>): unknown };
  EdgeRuntime?: { waitUntil(work: Promise<unknown>): void };
}

const platform = globalThis as Platform;
const { SUPABASE_URL: url, SUPABASE_SECRET_KEYS: keys = '{}', SUPABASE_SERVICE_ROLE_KEY: former } = process.env;
const apikey: string = Object.values<string>(JSON.parse(keys))[0] ?? former ?? '';

/** Notes a call by the function's name, the first part of the path. */
async function note(request: Request): Promise<void> {
  const name = new URL(request.url).pathname.split('/').find((part) => !['', 'functions', 'v1'].includes(part));
  const headers = { apikey, 'content-type': 'application/json', prefer: 'return=minimal' };
  const body = JSON.stringify({ function_name: name });
  const answer = await fetch(`${url}/rest/v1/trial_calls`, { method: 'POST', headers, body });
  await answer.body?.cancel();
}

const serve = platform.Deno?.serve;
if (platform.Deno && serve) {
  Object.defineProperty(platform.Deno, 'serve', {
    value: (handler: (request: Request) => Promise<Response>) =>
      serve((request) => {
        platform.EdgeRuntime?.waitUntil(note(request).catch((error) => console.error('a call is not counted', error)));
        return handler(request);
      }),
  });
}
