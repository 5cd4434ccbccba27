// The hooks of @millrace/client/react in React itself, over a whole stack.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import type { SupabaseClient } from '@supabase/supabase-js';
import { build } from 'esbuild';
import { parseHTML } from 'linkedom';
import { createElement, type FunctionComponent } from 'react';
import { createRoot } from 'react-dom/client';
import { WebSocket } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { watchRow } from '../../packages/client/index.ts';
import { useRow, useRows } from '../../packages/client/react.ts';
import { startTickets, type Tickets } from '../support/stack/watching.ts';

let tickets: Tickets;
beforeAll(async () => {
  tickets = await startTickets();
});
afterAll(() => tickets?.stop());

const soon = { timeout: 30_000, interval: 20 };

/** A page that React renders into. Its window stays, for what React still has to do. */
function page() {
  const { window, document } = parseHTML('<html><body><div id="root"></div></body></html>');
  Object.assign(globalThis, { window, document });
  const place = document.getElementById('root') as HTMLElement;
  const root = createRoot(place);
  onTestFinished(() => root.unmount());
  return { root, text: () => place.textContent ?? '', click: () => place.querySelector('button')?.click() };
}

function Ticket({ client, id }: { client: SupabaseClient; id: string | null }) {
  const { row, error } = useRow(client, { pipeline: 'tickets', key: id });
  return createElement('p', null, error ? error.code : `${id} ${row?.stages.read?.state ?? '…'}`);
}

/** Each text that a list has had. */
const listed: string[] = [];

function List({ client, ids }: { client: SupabaseClient; ids: string[] }) {
  const { rows, errors } = useRows(client, { pipeline: 'tickets', keys: ids });
  const text = ids.map((id) => errors[id]?.code ?? rows[id]?.stages.read?.state ?? '…').join(' ');
  listed.push(text);
  return createElement('p', null, text);
}

test('a component shows its row, follows it, and watches another once its key is another', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const [one, two] = [await tickets.add(user), await tickets.add(user)];
  const { root, text } = page();
  root.render(createElement(Ticket, { client, id: one }));
  await expect.poll(text, soon).toBe(`${one} pending`);
  await tickets.queue(one);
  await expect.poll(text, soon).toBe(`${one} queued`);
  root.render(createElement(Ticket, { client, id: two }));
  await expect.poll(text, soon).toBe(`${two} pending`);
  root.render(createElement(Ticket, { client, id: '999999' }));
  await expect.poll(text, soon).toBe('not_found');
  root.render(createElement(Ticket, { client, id: null }));
  await expect.poll(text, soon).toBe('null …');
  await expect.poll(() => client.getChannels(), soon).toEqual([]);
});

test('a list shows all its rows, and leaves them when it goes', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const ids = [await tickets.add(user), await tickets.add(user), await tickets.add(user)];
  const { root, text } = page();
  root.render(createElement(List, { client, ids: [...ids, '999999'] }));
  await expect.poll(text, soon).toBe('pending pending pending not_found');
  await tickets.queue(String(ids[1]));
  await expect.poll(text, soon).toBe('pending queued pending not_found');
  root.unmount();
  await expect.poll(() => client.getChannels(), soon).toEqual([]);
});

test('a row that joins or leaves a list takes nothing from the others', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const [one, two, three] = [await tickets.add(user), await tickets.add(user), await tickets.add(user)];
  const { root, text } = page();
  root.render(createElement(List, { client, ids: [one, two] }));
  await expect.poll(text, soon).toBe('pending pending');
  await expect.poll(() => client.getChannels()[0]?.state, soon).toBe('joined');
  const [channel] = client.getChannels();
  listed.length = 0;
  root.render(createElement(List, { client, ids: [three, one, two] }));
  await expect.poll(text, soon).toBe('pending pending pending');
  root.render(createElement(List, { client, ids: [three, two] }));
  await expect.poll(text, soon).toBe('pending pending');
  expect(new Set(listed)).toEqual(new Set(['… pending pending', 'pending pending pending', 'pending pending']));
  expect(client.getChannels()).toEqual([channel]);
  await tickets.queue(three);
  await expect.poll(text, soon).toBe('queued pending');
});

test('an error goes once its row comes', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const key = await tickets.add(randomUUID());
  const { root, text } = page();
  root.render(createElement(Ticket, { client, id: key }));
  await expect.poll(text, soon).toBe('not_found');
  await tickets.owner.query('update public.tickets set owner = $2 where id = $1', [key, user]);
  // A new watch of a refused row has the client ask for it again.
  onTestFinished(watchRow(client, { pipeline: 'tickets', key }).subscribe(() => {}));
  await expect.poll(text, soon).toBe(`${key} pending`);
});

const repository = path.join(import.meta.dirname, '..', '..');
/** The first block of a page of docs in this language. */
const blockOf = (name: string, language: string) =>
  fs
    .readFileSync(path.join(repository, 'docs', name), 'utf8')
    .split(`\`\`\`${language}\n`)[1]
    ?.split('```')[0] ?? '';

/** The component of docs/progress.md, over the stage `read` of the tests. */
async function documentedPage(): Promise<FunctionComponent> {
  fs.mkdirSync(path.join(repository, '.cache'), { recursive: true });
  const folder = fs.mkdtempSync(path.join(repository, '.cache', 'react-page-'));
  onTestFinished(() => fs.rmSync(folder, { recursive: true }));
  const outfile = path.join(folder, 'page.mjs');
  const contents = blockOf('progress.md', 'tsx').replaceAll('triage', 'read');
  await build({
    stdin: { contents, loader: 'tsx', resolveDir: repository },
    outfile,
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'react',
    alias: { '@millrace/client/react': path.join(repository, 'packages/client/react.ts') },
    external: ['react', 'react/jsx-runtime', '@supabase/supabase-js'],
    define: {
      'import.meta.env': JSON.stringify({
        VITE_SUPABASE_URL: tickets.stack.apiUrl,
        VITE_SUPABASE_PUBLISHABLE_KEY: tickets.stack.publishableKey,
      }),
    },
  });
  return (await import(outfile)).default;
}

test('the page of docs/progress.md signs in, starts a row and shows its stages and result', async () => {
  await tickets.owner.query(blockOf('local-stack.md', 'sql'));
  const { rows } = await tickets.owner.query(`select id from auth.users where email = 'ann@example.com'`);
  await tickets.add(rows[0].id, 'No light');
  vi.stubGlobal('WebSocket', WebSocket);
  vi.stubGlobal('prompt', (label: string) => (label === 'Email' ? 'ann@example.com' : 'a password'));
  onTestFinished(() => {
    vi.unstubAllGlobals();
  });
  const { root, text, click } = page();
  root.render(createElement(await documentedPage(), null));
  await expect.poll(text, soon).toBe('Sign in');
  click();
  await expect.poll(text, soon).toBe('No light: pending nullStart');
  click();
  await expect.poll(text, soon).toBe('No light: queued nullStart');
  await tickets.work('read');
  await expect.poll(text, soon).toBe('No light: completed nullStart');
  await tickets.work('answer');
  await expect.poll(text, soon).toBe('No light: completed {"ok":true}Start');
});
