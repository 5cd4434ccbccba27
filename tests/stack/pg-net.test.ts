import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { type ContractTarget, startContractTarget } from './contract-target.ts';
import { type HttpTarget, startHttpTarget } from './http-target.ts';

let target: ContractTarget;
let web: HttpTarget;
let client: pg.Client;

beforeAll(async () => {
  target = await startContractTarget('pg_net');
  web = await startHttpTarget();
  client = await target.connect();
});
afterAll(async () => {
  await target.stop();
  await web.stop();
});
beforeEach(() => {
  web.received.length = 0;
});

async function post(url: string, extra = ''): Promise<string> {
  const { rows } = await client.query(`select net.http_post(url => $1 ${extra}) as id`, [url]);
  return rows[0].id;
}

async function response(id: string) {
  const { rows } = await client.query('select * from net._http_response where id = $1', [id]);
  return rows[0];
}

async function raised(statement: string): Promise<string> {
  try {
    await client.query(statement);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('pg_net', () => {
  it('sends nothing before the commit, and nothing at all after a rollback', async () => {
    // First of all tests, on a worker that is not in its pause: a request of 0.2 s ago would have arrived.
    await client.query('begin');
    await post(`${web.url}/cancelled`);
    await client.query('rollback');
    await client.query('begin');
    await post(`${web.url}/committed`);
    // A round trip of another session passes while the transaction is open.
    const other = await target.connect();
    await other.query('select pg_sleep(0.2)');
    expect(web.received).toEqual([]);
    await client.query('commit');
    await until(() => web.received.length > 0);
    expect(web.received.map(({ url }) => url)).toEqual(['/committed']);
  });

  it('posts JSON with the given headers and parameters, leaving out headers that are null', async () => {
    await client.query(
      `select net.http_post(url => $1, body => '{"a": 1}', params => '{"q": "x y&z"}',
                            headers => '{"apikey": "k", "x-none": null}', timeout_milliseconds => 2000)`,
      [`${web.url}/in`],
    );
    const [request] = await until(() => web.received.length > 0 && web.received);
    expect(request).toMatchObject({ method: 'POST', body: '{"a": 1}', headers: { apikey: 'k' } });
    expect(request?.headers['content-type']).toBe('application/json');
    expect(request?.headers).not.toHaveProperty('x-none');
    expect(new URL(request?.url ?? '', web.url).searchParams.get('q')).toBe('x y&z');
  });

  it.each([
    ['HTTP://A.test', [], 'http://A.test/'],
    ['http://a.test?x#y', ['b=c', 'd=e'], 'http://a.test/?x&b=c&d=e#y'],
    ['http://u:p@[::1]:80/z', ['b=c'], 'http://u:p@[::1]:80/z?b=c'],
  ])('reads the address %s with the parameters %j', async (url, parameters, expected) => {
    const { rows } = await client.query('select net._encode_url_with_params_array($1, $2) as url', [url, parameters]);
    expect(rows[0].url).toBe(expected);
  });

  it('leaves out parameters that are null and headers that are empty, and sends other values as JSON', async () => {
    const login = web.url.replace('://', '://me:secret@');
    await client.query(
      `select net.http_post(url => $1, params => '{"a": null, "b": 1}', body => '{}',
                            headers => '{"x-empty": "", "x-number": 5, "x-object": {"a": 1}}'),
              net.http_delete(url => $1, body => '[]')`,
      [`${login}/in`],
    );
    await until(() => web.received.length === 2);
    const [first, second] = web.received.toSorted((a, b) => b.method.localeCompare(a.method));
    expect(first).toMatchObject({ url: '/in?b=1', headers: { 'x-number': '5', 'x-object': '{"a": 1}' } });
    expect(first?.headers).not.toHaveProperty('x-empty');
    const userAgent = expect.stringMatching(/^pg_net\/0\.20\.\d+$/);
    expect(first?.headers).toMatchObject({ authorization: 'Basic bWU6c2VjcmV0', 'user-agent': userAgent });
    expect(second?.headers['content-type']).toBe('application/x-www-form-urlencoded');
  });

  it('shows its worker to a role that sees all sessions and is no superuser', async () => {
    const { rows } = await client.query(
      `select current_setting('is_superuser') as super, count(*)::int as workers from pg_stat_activity
       where datname = current_database() and (backend_type ilike '%pg_net%' or application_name ilike 'pg_net %')`,
    );
    expect(rows).toEqual([{ super: 'off', workers: 1 }]);
  });

  it('gets and deletes', async () => {
    await client.query('select net.http_get(url => $1), net.http_delete(url => $1)', [`${web.url}/it`]);
    await until(() => web.received.length === 2);
    expect(web.received.map(({ method }) => method).sort()).toEqual(['DELETE', 'GET']);
  });

  it('keeps a row per response, whatever its status, and follows redirects', async () => {
    const ids = [];
    for (const path of ['/status?code=503', '/redirect', '/']) ids.push(await post(`${web.url}${path}`));
    const rows = [];
    for (const id of ids) rows.push(await until(() => response(id)));
    expect(rows.map(({ status_code }) => status_code)).toEqual([503, 200, 200]);
    expect(rows[2]).toMatchObject({ content: 'hello', content_type: 'text/plain', timed_out: false, error_msg: null });
    expect(rows[2].headers['X-Seen']).toBe('yes');
    // The headers are those of the first answer.
    expect(rows[1]).toMatchObject({ content_type: 'text/plain', headers: { location: '/found' } });
    expect(rows[1].headers).not.toHaveProperty('X-Seen');
  });

  it('makes a GET of a POST that is sent elsewhere, and leaves a DELETE one', async () => {
    await client.query(`select net.http_post(url => $1), net.http_delete(url => $1)`, [`${web.url}/redirect`]);
    const found = await until(() => {
      const there = web.received.filter(({ url }) => url === '/found');
      return there.length === 2 && there;
    });
    expect(found.map(({ method }) => method).sort()).toEqual(['DELETE', 'GET']);
  });

  it('reports a timeout and a refused connection in the row', async () => {
    const slow = await post(`${web.url}/slow?ms=3000`, ', timeout_milliseconds => 150');
    const refused = await post('http://127.0.0.1:1/');
    const timedOut = await until(() => response(slow));
    expect(timedOut).toMatchObject({ timed_out: true, status_code: null });
    expect(timedOut.error_msg).toMatch(/^Timeout of 150 ms reached\. Total time: [\d.]+ ms \(DNS time: /);
    const unreachable = await until(() => response(refused));
    expect(unreachable).toMatchObject({ timed_out: false, status_code: null });
    expect(unreachable.error_msg).toMatch(/connect to server/);
  });

  it('says of a request that failed otherwise what libcurl says', async () => {
    const failures = {
      'ftp://127.0.0.1/': 'Unsupported protocol',
      [`${web.url}/redirect?to=ftp://127.0.0.1/`]: 'Unsupported protocol',
      [web.url.replace('http', 'https')]: 'SSL connect error',
      [`${web.url}/broken`]: 'Transferred a partial file',
      'http://no-such-host.invalid/': "Couldn't resolve host name",
    };
    const ids = await Promise.all(Object.keys(failures).map((url) => post(url)));
    const rows = await Promise.all(ids.map((id) => until(() => response(id))));
    expect(rows.map(({ error_msg }) => error_msg)).toEqual(Object.values(failures));
  });

  it('waits for ever where the timeout is none', async () => {
    const id = await post(`${web.url}/slow?ms=200`, ', timeout_milliseconds => 0');
    expect(await until(() => response(id))).toMatchObject({ status_code: 200 });
  });

  it('waits five seconds for an answer unless told otherwise', async () => {
    const { rows } = await client
      .query(
        `begin; select net.http_get('http://127.0.0.1:1/'), net.http_post('http://127.0.0.1:1/');
       select timeout_milliseconds from net.http_request_queue; rollback` as string,
      )
      .then((results) => (results as unknown as pg.QueryResult[])[2] as pg.QueryResult);
    expect(rows.map(({ timeout_milliseconds }) => timeout_milliseconds)).toEqual([5000, 5000]);
  });

  it('raises in the caller’s transaction for a null or broken URL and for a content type that is not JSON', async () => {
    expect(await raised('select net.http_post(url => null)')).toMatch(/null value in column "url"/);
    expect(await raised(`select net.http_post(url => 'not a url')`)).not.toBe('');
    for (const url of ['/relative', 'http://', `${web.url}/a b`, 'http://a.test:99999/', 'http://[::1/', '']) {
      expect(await raised(`select net.http_get(url => '${url}')`)).not.toBe('');
    }
    const headers = `'{"Content-Type": "application/json; charset=utf-8"}'`;
    expect(await raised(`select net.http_post(url => '${web.url}', headers => ${headers})`)).toMatch(/Content-Type/);
  });

  it('takes at most 200 requests at a time, and pauses a second before the next', async () => {
    await client.query(`select net.http_post(url => $1) from generate_series(1, 201)`, [`${web.url}/many`]);
    await until(() => web.received.length === 201);
    const times = web.received.map(({ at }) => at).sort((a, b) => a - b);
    expect((times[200] ?? 0) - (times[199] ?? 0)).toBeGreaterThan(800);
  });

  it('shows no response of a batch before its slowest has come', async () => {
    await client.query('begin');
    const slow = await post(`${web.url}/slow?ms=1500`);
    const quick = await post(`${web.url}/quick`);
    await client.query('commit');
    await until(() => web.received.length === 2);
    await until(() => response(quick));
    // Both in one look: what has come of the batch shows only when all has.
    expect(await response(slow)).toMatchObject({ status_code: 200 });
  });

  it('lets the caller read queue and responses, and anybody else who has SQL', async () => {
    const { rows } = await client.query(
      `select has_schema_privilege('public', 'net', 'usage') as usage,
              has_table_privilege('public', 'net.http_request_queue', 'select') as queue`,
    );
    expect(rows[0]).toEqual({ usage: true, queue: true });
  });

  it('loses queue, responses and ids in a crash of the server, and none in a clean restart', async ({ skip }) => {
    const { server } = target;
    if (!server) return skip();
    // A request that waits behind a slow batch is still queued when the server goes down.
    await post(`${web.url}/slow?ms=1000`);
    await until(() => web.received.length === 1);
    await post(`${web.url}/kept`);
    await client.end();
    await server.stop();
    await server.start();
    client = await target.connect();
    await until(() => web.received.some(({ url }) => url === '/kept'));

    await client.query('begin');
    await post(`${web.url}/lost`);
    await client.query('commit');
    await server.kill9();
    await server.start();
    client = await target.connect();
    const { rows } = await client.query(
      `select (select count(*) from net.http_request_queue) as queued, (select count(*) from net._http_response) as answered`,
    );
    expect(rows[0]).toEqual({ queued: '0', answered: '0' });
    const id = await post(`${web.url}/after`);
    expect(id).toBe('1');
    await until(() => response(id));
  });
});
