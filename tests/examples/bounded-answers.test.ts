// Services of settings that answer with too much, or lead elsewhere: Notion, Google Sheets and its token service.
import { generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { notionClient } from '../../supabase/functions/_services/notion/notion-client.ts';
import { notionSettings } from '../../supabase/functions/_services/notion/notion-settings.ts';
import { readDataSource } from '../../supabase/functions/_services/notion/read-data-source.ts';
import { forgetTokens } from '../../supabase/functions/_services/sheets/access-token.ts';
import { readSheet } from '../../supabase/functions/_services/sheets/read-sheet.ts';
import { sheetsSettings } from '../../supabase/functions/_services/sheets/sheets-settings.ts';

let server: http.Server;
let url: string;
let sent: number;
let inside: number;
/** The fate of a request; a token is given out unless it says otherwise. */
let answer: (path: string, response: http.ServerResponse) => void;

beforeAll(async () => {
  server = http.createServer((request, response) => {
    if (request.url === '/inside') inside++;
    answer(request.url ?? '', response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());
beforeEach(() => {
  sent = 0;
  inside = 0;
  forgetTokens();
});

const megabyte = ' '.repeat(1024 * 1024);
/** Sends a hundred megabytes, as far as they are read. */
function flood(response: http.ServerResponse): void {
  const more = () => {
    while (sent < 100 && !response.destroyed) {
      sent++;
      if (!response.write(megabyte)) return void response.once('drain', more);
    }
    response.end();
  };
  response.writeHead(200, { 'content-type': 'application/json' });
  more();
}
const leadInside = (response: http.ServerResponse) => void response.writeHead(307, { location: '/inside' }).end();
const giveToken = (response: http.ServerResponse) => void response.end('{"access_token": "t", "expires_in": 3600}');

const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
});
const askNotion = () => {
  const settings = notionSettings.parse({ NOTION_TOKEN: 'secret', NOTION_API_URL: url });
  const client = notionClient(settings, AbortSignal.timeout(30_000), 20_000);
  return readDataSource(
    client,
    { address: `collection://${'ab'.repeat(16)}`, column: null, cursor: null },
    () => new Date(),
  );
};
const askSheets = () => {
  const account = { client_email: 'a@b.test', private_key: privateKey, token_uri: `${url}/token` };
  const settings = sheetsSettings.parse({ GOOGLE_SERVICE_ACCOUNT: JSON.stringify(account), SHEETS_API_URL: url });
  const address = 'https://docs.google.com/spreadsheets/d/a/edit';
  return readSheet(
    { address, column: null, cursor: null },
    { settings, signal: AbortSignal.timeout(30_000), timeoutMs: 20_000 },
  );
};
// The bytes that the sockets hold beyond the bound are a matter of the system.
const services = {
  Notion: { ask: askNotion, isAsked: () => true, most: 50 },
  'Google Sheets': { ask: askSheets, isAsked: (path: string) => path !== '/token', most: 50 },
  'Google’s token service': { ask: askSheets, isAsked: (path: string) => path === '/token', most: 50 },
};
const cases = Object.entries(services).map(([name, service]) => ({ name, ...service }));

test.for(cases)('$name is not read beyond its bound', async ({ name, ask, isAsked, most }) => {
  answer = (path, response) => (isAsked(path) ? flood(response) : giveToken(response));
  await expect(ask()).rejects.toMatchObject({
    code: 'too_large',
    permanent: true,
    message: expect.stringContaining(`${name} answers with more than`),
  });
  expect(sent).toBeLessThan(most);
});

test.for(cases)('$name that leads elsewhere is not followed', async ({ name, ask, isAsked }) => {
  answer = (path, response) => (isAsked(path) ? leadInside(response) : giveToken(response));
  await expect(ask()).rejects.toMatchObject({
    code: 'redirected',
    permanent: true,
    message: expect.stringContaining(`${name} at 127.0.0.1`),
  });
  expect(inside).toBe(0);
});
