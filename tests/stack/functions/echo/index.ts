import { z } from 'zod';

const bodies = z.object({ sleepMs: z.number().optional(), status: z.number().optional() });

// Answers with what it saw: its URL, the caller's headers and its own environment.
export default {
  async fetch(request: Request): Promise<Response> {
    const { sleepMs = 0, status = 200 } = request.method === 'POST' ? bodies.parse(await request.json()) : {};
    await new Promise((resolve) => setTimeout(resolve, sleepMs));
    const environment = Object.fromEntries(
      ['SUPABASE_URL', 'SUPABASE_SECRET_KEYS', 'SETTING'].map((n) => [n, read(n)]),
    );
    const headers = Object.fromEntries(request.headers);
    return Response.json({ url: request.url, method: request.method, headers, environment }, { status });
  },
};

function read(name: string): string | undefined {
  return (globalThis as unknown as { process: { env: Record<string, string> } }).process?.env[name];
}
