import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { forwardRest } from '../../local/platform/gateway/forward-rest.ts';
import { type Stack, startStack } from '../../local/platform/stack.ts';

const account = '11111111-1111-4111-8111-111111111111';
const other = '22222222-2222-4222-8222-222222222222';
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({
    services: false,
    migrations: path.join(import.meta.dirname, 'migrations'),
    functionsDir: path.join(import.meta.dirname, 'functions'),
    fsync: false,
  });
});
afterAll(() => stack.stop());

async function role(headers: Record<string, string>): Promise<string> {
  const answer = await fetch(`${stack.apiUrl}/rest/v1/rpc/who`, { method: 'POST', headers });
  return answer.status === 200 ? answer.json() : `${answer.status}`;
}

describe('the Data API behind the gateway', () => {
  it('turns each API key into its role, with and without the key as bearer', async () => {
    const roles = {
      [stack.publishableKey]: 'anon',
      [stack.anonKey]: 'anon',
      [stack.secretKey]: 'service_role',
      [stack.serviceRoleKey]: 'service_role',
    };
    for (const [apikey, expected] of Object.entries(roles)) {
      expect(await role({ apikey })).toBe(expected);
      expect(await role({ apikey, authorization: `Bearer ${apikey}` })).toBe(expected);
    }
  });

  it('lets a signed-in user’s token decide, whatever the API key', async () => {
    const authorization = `Bearer ${await stack.signUserToken({ sub: other })}`;
    expect(await role({ apikey: stack.publishableKey, authorization })).toBe('authenticated');
    expect(await role({ apikey: stack.secretKey, authorization })).toBe('authenticated');
  });

  it('refuses a call without an API key, with a wrong key, and with a forged or expired token', async () => {
    expect(await role({})).toBe('401');
    expect(await role({ apikey: 'sb_secret_guess' })).toBe('401');
    expect(await role({ apikey: stack.publishableKey, authorization: 'Bearer forged' })).toBe('401');
    const expired = await stack.signUserToken({ sub: other, exp: 1 });
    expect(await role({ apikey: stack.publishableKey, authorization: `Bearer ${expired}` })).toBe('401');
  });

  it('shows a signed-in user only the rows of its account', async () => {
    const headers = { apikey: stack.secretKey, 'content-type': 'application/json' };
    const body = JSON.stringify([account, other].map((account_id) => ({ account_id, text: account_id })));
    await fetch(`${stack.apiUrl}/rest/v1/notes`, { method: 'POST', headers, body });
    const authorization = `Bearer ${await stack.signUserToken({ account_id: account })}`;
    const answer = await fetch(`${stack.apiUrl}/rest/v1/notes?select=text`, {
      headers: { apikey: stack.publishableKey, authorization },
    });
    expect(await answer.json()).toEqual([{ text: account }]);
  });

  it('knows a function that a migration adds or drops while it runs', async () => {
    const client = new pg.Client(stack.dbUrl);
    await client.connect();
    const answer = async () => {
      const init = { method: 'POST', headers: { apikey: stack.secretKey } };
      const response = await fetch(`${stack.apiUrl}/rest/v1/rpc/added`, init);
      return response.ok ? response.json() : response.status;
    };
    try {
      expect(await answer()).toBe(404);
      await client.query(`create function public.added() returns int language sql as 'select 7';
        grant execute on function public.added() to service_role`);
      await expect.poll(answer, { timeout: 10_000 }).toBe(7);
      await client.query('drop function public.added()');
      await expect.poll(answer, { timeout: 10_000 }).toBe(404);
    } finally {
      await client.end();
    }
  });

  it('answers every call, though callers between close their own connections', async () => {
    const call = (agent: http.Agent | false) =>
      new Promise<number | undefined>((answered, failed) => {
        const options = { method: 'POST', headers: { apikey: stack.secretKey }, agent };
        const request = http.request(`${stack.apiUrl}/rest/v1/rpc/who`, options, (answer) => {
          answer.resume().once('end', () => answered(answer.statusCode));
        });
        request.once('error', failed).end();
      });
    const keeping = new http.Agent({ keepAlive: true });
    const callOften = async (agent: http.Agent | false) => {
      const answers: (number | undefined)[] = [];
      for (let calls = 0; calls < 50; calls += 1) answers.push(await call(agent));
      return answers;
    };
    // Without an agent of its own, Node asks to close the connection after the call.
    const callers = [callOften(false), callOften(keeping), callOften(false), callOften(keeping)];
    const answers = (await Promise.all(callers)).flat();
    keeping.destroy();
    expect(new Set(answers)).toEqual(new Set([200]));
  });

  it('keeps schemas other than public out of reach', async () => {
    const headers = { apikey: stack.secretKey, 'accept-profile': 'vault' };
    const answer = await fetch(`${stack.apiUrl}/rest/v1/decrypted_secrets`, { headers });
    expect(answer.status).toBe(406);
  });

  it('answers a browser’s preflight', async () => {
    const answer = await fetch(`${stack.apiUrl}/rest/v1/notes`, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example.com', 'access-control-request-headers': 'apikey' },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-headers')).toBe('apikey');
  });
});

describe('the connections to the Data API', () => {
  /** Puts the gateway's forwarding before a server of our own, and counts the server's connections. */
  async function forwarding(answer: http.RequestListener) {
    const connections: Socket[] = [];
    const upstream = http.createServer(answer).on('connection', (socket) => connections.push(socket));
    const port = await listening(upstream);
    const gateway = http.createServer((request, response) => {
      forwardRest(port, new URL(request.url ?? '/', 'http://gateway'), request.headers, request, response);
    });
    const url = `http://127.0.0.1:${await listening(gateway)}/rest/v1/things`;
    const call = async (method = 'GET') => (await fetch(url, { method })).text();
    const stop = () => {
      for (const server of [gateway, upstream]) server.close().closeAllConnections();
    };
    return { connections, call, stop };
  }
  const listening = async (server: http.Server) => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };

  it('serve one call after the other', async () => {
    const { connections, call, stop } = await forwarding((_, response) => response.end('yes'));
    for (let n = 0; n < 3; n += 1) expect(await call()).toBe('yes');
    expect(connections).toHaveLength(1);
    stop();
  });

  it('serve no other call after a refusal, which may have come before all of the call was read', async () => {
    const { connections, call, stop } = await forwarding((_, response) => response.writeHead(400).end('no'));
    for (let n = 0; n < 3; n += 1) expect(await call('POST')).toBe('no');
    expect(connections).toHaveLength(3);
    stop();
  });

  it('are opened anew where the Data API has closed them', async () => {
    const { connections, call, stop } = await forwarding((_, response) => response.end('yes'));
    for (let n = 0; n < 3; n += 1) {
      expect(await call()).toBe('yes');
      const closed = new Promise((resolve) => connections.at(-1)?.once('close', resolve));
      connections.at(-1)?.end();
      await closed;
    }
    expect(connections).toHaveLength(3);
    stop();
  });
});

describe('functions behind the gateway', () => {
  const status = async (name: string, headers: Record<string, string> = {}) =>
    (await fetch(`${stack.functionsUrl}/${name}`, { headers })).status;

  it('ask for a valid token unless the configuration says verify_jwt = false', async () => {
    expect(await status('echo')).toBe(401);
    expect(await status('echo', { apikey: stack.secretKey })).toBe(401);
    expect(await status('echo', { authorization: 'Bearer forged' })).toBe(401);
    expect(await status('echo', { authorization: `Bearer ${stack.anonKey}` })).toBe(200);
    expect(await status('echo', { authorization: `Bearer ${await stack.signUserToken({ sub: other })}` })).toBe(200);
    expect(await status('background/0')).toBe(202);
  });

  it('are not found when there is no such folder, or one that cannot be a function', async () => {
    expect(await status('nothing')).toBe(404);
    expect(await status('_millrace')).toBe(404);
    expect(await status('..%2ffunctions%2fecho')).toBe(404);
  });
});

describe('an address that cannot be read', () => {
  /** The status that a request is answered with, its path and Host header as they are. */
  const raw = (path: string, host = 'gateway') =>
    new Promise<number | undefined>((resolve, reject) => {
      const { port } = new URL(stack.apiUrl);
      http
        .get({ host: '127.0.0.1', port, path, headers: { host } }, (answer) => resolve(answer.resume().statusCode))
        .once('error', reject);
    });

  it('is the caller’s fault, and no path is taken for a host', async () => {
    for (const path of ['//[', '//[/functions/v1/echo', '//functions/v1/background/0', '//x/operate/api/overview']) {
      expect(await raw(path), path).toBe(404);
    }
    expect(await raw('http://[/')).toBe(400);
  });
});

describe('what the database knows of the project', () => {
  it('is its URL and its wake-up secret, in Vault', async () => {
    const headers = { apikey: stack.secretKey };
    const answer = await fetch(`${stack.apiUrl}/rest/v1/rpc/project_secrets`, { method: 'POST', headers });
    expect(await answer.json()).toEqual({
      millrace_project_url: stack.apiUrl,
      millrace_wake_secret: stack.wakeSecret,
    });
  });
});
