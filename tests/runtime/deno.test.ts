import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { parse } from 'smol-toml';
import { expect, onTestFinished, test } from 'vitest';
import { denoBinary, oldDenoBinary } from '../../local/platform/binaries.ts';
import { deployedFunctions, readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { startBatches } from '../../local/services/batches/server.ts';
import { startServer } from '../support/http-server.ts';

const root = path.join(import.meta.dirname, '../..');
const functions = path.join(root, 'supabase/functions');
const readJson = (file: string) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
const deployed = deployedFunctions(functions);

test('deno.json and package.json name the same versions of the same libraries', () => {
  const { imports } = readJson('supabase/functions/deno.json') as { imports: Record<string, string> };
  const { dependencies, devDependencies } = readJson('package.json') as Record<string, Record<string, string>>;
  const installed: Record<string, string | undefined> = { ...devDependencies, ...dependencies };
  const named = Object.values(imports).map((target) => target.match(/^npm:\/?((?:@[^/]+\/)?[^@/]+)@([^/]+)/)?.slice(1));
  const wanted = Object.fromEntries(named as [string, string][]);
  expect(wanted).toEqual(Object.fromEntries(Object.keys(wanted).map((name) => [name, installed[name]])));
});

test('every bare import of the functions is mapped for Deno', () => {
  const { imports } = readJson('supabase/functions/deno.json') as { imports: Record<string, string> };
  const files = readdirSync(functions, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const used = new Set(
    files.flatMap((file) =>
      [...readFileSync(path.join(functions, file), 'utf8').matchAll(/ from '([^'.][^']*)'/g)].map(
        (match) => match[1] ?? '',
      ),
    ),
  );
  expect(used.size).toBeGreaterThan(5);
  for (const name of used) {
    const mapped = Object.keys(imports).some((key) => key === name || (key.endsWith('/') && name.startsWith(key)));
    expect(mapped || name.startsWith('node:'), name).toBe(true);
  }
});

test('each stage of leads has the function its definition names', async () => {
  const { leads } = await import('../../supabase/functions/_pipelines/leads.ts');
  for (const stage of Object.values(leads.stages)) expect(deployed).toContain('function' in stage && stage.function);
  expect(deployed).toEqual(expect.arrayContaining(['job-complete', 'millrace']));
});

test('every function has its imports mapped, and checks its callers itself', () => {
  const configOf = readFunctionConfigs(functions);
  const config = parse(readFileSync(path.join(root, 'supabase/config.toml'), 'utf8'));
  // The platform asks for a token of any function that config.toml does not name.
  expect(Object.keys(config.functions ?? {}).sort()).toEqual(deployed);
  for (const { verifyJwt, importMap } of deployed.map(configOf)) {
    expect(verifyJwt).toBe(false);
    expect(importMap).toBe(path.join(functions, 'deno.json'));
  }
});

test.each([
  ['the Deno of the stack', denoBinary()],
  ['a Deno as old as the platform’s', oldDenoBinary()],
])('every function loads in %s', async (_, deno) => {
  // Serving is replaced, so that each function ends as soon as it has loaded.
  const load = `
    let served = 0;
    Deno.serve = () => { served++; };
    for (const name of ${JSON.stringify(deployed)}) await import('file://${functions}/' + name + '/index.ts');
    console.log(served);
  `;
  const args = ['--no-lock', '--node-modules-dir=manual', '--config', path.join(functions, 'deno.json')];
  const { stdout } = await promisify(execFile)(deno, ['eval', ...args, load], { cwd: functions });
  expect(Number(stdout)).toBe(deployed.length);
});

test.each([
  ['the Deno of the stack', denoBinary()],
  ['a Deno as old as the platform’s', oldDenoBinary()],
])('a feed that is packed in two members is read whole in %s', async (_, deno) => {
  const item = (name: string) => `<item><link>https://site.test/${name}</link></item>`;
  const halves = [`<rss version="2.0"><channel>${item('a')}`, `${item('b')}</channel></rss>`].map((half) =>
    gzipSync(half),
  );
  const site = await startServer(() => ({
    headers: { 'content-encoding': 'gzip', 'content-type': 'application/rss+xml' },
    bytes: Buffer.concat(halves),
  }));
  const ask = `
    const { pollSource } = await import('file://${functions}/_articles/feeds/poll-source.ts');
    const url = new URL('${site.url}/feed');
    const poll = await pollSource({ address: url.href, etag: null, last_modified: null, cursor: null }, {
      access: { allowed: new Set([url.host]), signal: new AbortController().signal, timeoutMs: 30_000 },
      limits: { newUrls: 9, entries: 99, bytes: 1e6, documents: 9, ms: 20_000 },
      unknown: async (urls) => urls,
      now: () => new Date(),
    });
    console.log(poll.urls.map(({ url }) => url).join(), poll.problem);
    Deno.exit();
  `;
  const args = ['--no-lock', '--node-modules-dir=manual', '--config', path.join(functions, 'deno.json')];
  const { stdout } = await promisify(execFile)(deno, ['eval', ...args, ask], { cwd: functions });
  expect(stdout.trim()).toBe('https://site.test/a,https://site.test/b null');
});

test('a request whose Host header makes no address is answered with 400, and reaches no function', async () => {
  const ask = `
    const { serve } = Deno;
    let port;
    Deno.serve = (handler) => { port = serve({ hostname: '127.0.0.1', port: 0, onListen() {} }, handler).addr.port; };
    const runtime = await import('file://${functions}/_millrace/edge-runtime.ts');
    runtime.serve(async () => new Response('handled'));
    const answers = await Promise.all(['[', 'a b', 'x:99999', 'x'].map(async (host) => {
      const connection = await Deno.connect({ hostname: '127.0.0.1', port });
      const request = 'GET //[ HTTP/1.1\\r\\nHost: ' + host + '\\r\\nConnection: close\\r\\n\\r\\n';
      await connection.write(new TextEncoder().encode(request));
      return (await new Response(connection.readable).text()).split(' ')[1];
    }));
    console.log(answers.join());
    Deno.exit();
  `;
  const args = ['--no-lock', '--node-modules-dir=manual', '--config', path.join(functions, 'deno.json')];
  const { stdout } = await promisify(execFile)(denoBinary(), ['eval', ...args, ask], { cwd: functions });
  expect(stdout.trim()).toBe('400,400,400,200');
});

test('a paid request is sent once, though Deno repeats a request whose connection breaks', async () => {
  const fault = (action: string) => (action === 'begin' || action === 'direct' ? ('lost' as const) : undefined);
  const provider = await startBatches({ fault, answer: () => '{}' });
  onTestFinished(() => provider.stop());
  const ask = `
    const { callProvider } = await import('file://${functions}/_millrace/batches/call-provider.ts');
    const { createResponse } = await import('file://${functions}/_millrace/model/model-client.ts');
    const { signal } = new AbortController();
    const of = (api) => ({ prefix: 'LLM', api, url: '${provider.url}/v1', model: 'm', mode: 'inline', prices: {} });
    const context = { log: console, traceId: '1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed', retryCount: 0 };
    const sent = [
      () => callProvider('/batches', of('responses'), { signal, body: { input_file_id: 'f' } }),
      ...['responses', 'chat', 'messages'].map((api) =>
        () => createResponse({ model: 'm', input: 'Hello?' }, of(api), context, { signal, key: 'k' })),
    ];
    for (const send of sent) {
      // The connection is kept open.
      await callProvider('/batches?limit=1', of('responses'), { signal });
      await send().catch((error) => console.log(error.code));
    }
    await callProvider('/batches?limit=1', of('responses'), { signal });
    await fetch('${provider.url}/v1/responses', { method: 'POST', body: '{"input":"again"}' }).catch(() => {});
    Deno.exit();
  `;
  const args = ['--no-lock', '--node-modules-dir=manual', '--config', path.join(functions, 'deno.json')];
  const { stdout } = await promisify(execFile)(denoBinary(), ['eval', ...args, ask], { cwd: functions });
  expect(stdout.trim().split('\n')).toEqual(Array(4).fill('model_unreachable'));
  // A text is sent twice: where that is over, no body has to be a blob.
  expect(provider.calls).toMatchObject({ begin: 1, direct: 3 + 2 });
});

test('the old Deno is older than the stack’s', async () => {
  const versionOf = async (deno: string) =>
    /^deno (\S+)/.exec((await promisify(execFile)(deno, ['--version'])).stdout)?.[1];
  expect(await versionOf(oldDenoBinary())).toBe('2.1.4');
  expect(await versionOf(denoBinary())).not.toBe('2.1.4');
});
