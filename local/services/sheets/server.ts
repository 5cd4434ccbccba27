// A stand-in for Google Sheets' REST API and its token service, for machines without them: it serves CSV and JSON files, each a
// spreadsheet by its name, to whoever signs with the service account's key.

import { type Context, Hono } from 'hono';
import { exportPKCS8, exportSPKI, generateKeyPair, importPKCS8, importSPKI, jwtVerify, SignJWT } from 'jose';
import { listen, type Service } from '../http/listen.ts';
import { readServed } from '../http/served-folder.ts';
import { masked, readFieldMask } from './field-mask.ts';
import { inRange, readSpreadsheet, type Tab } from './spreadsheet.ts';

export interface SheetsOptions {
  /** Where the spreadsheets lie: `ID.csv` or `ID.json`. */
  folder: string;
  port?: number;
  /** Answers with this status, as long as it says one, in place of what was asked for. */
  fail?: (path: string) => { status: number; headers?: Record<string, string> } | undefined;
}

/** A running stand-in, with the content of its service account's key file. */
export interface Sheets extends Service {
  serviceAccount: string;
}

const email = 'reader@millrace-local.iam.gserviceaccount.com';
const scope = /(^| )https:\/\/www\.googleapis\.com\/auth\/(spreadsheets|drive)(\.readonly)?( |$)/;

/** Starts the stand-in of Google Sheets on the loopback interface. Rejects when the port is taken. */
export async function startSheets({ folder, port, fail = () => undefined }: SheetsOptions): Promise<Sheets> {
  const pair = await generateKeyPair('RS256', { extractable: true });
  const keys: Keys = { publicKey: await exportSPKI(pair.publicKey), privateKey: await exportPKCS8(pair.privateKey) };
  const app = new Hono();
  app.use(async (c, next) => {
    const failure = fail(c.req.path);
    if (failure === undefined) return next();
    return refuse(c, failure.status, 'It was told to fail.', failure.headers);
  });
  app.post('/token', (c) => giveToken(c, keys));
  app.get('/v4/spreadsheets/:id', (c) => giveSpreadsheet(c, folder, keys));
  const service = await listen(app.fetch, port);
  const account = {
    type: 'service_account',
    private_key_id: 'local',
    private_key: keys.privateKey,
    client_email: email,
    token_uri: `${service.url}/token`,
  };
  return { ...service, serviceAccount: JSON.stringify(account) };
}

interface Keys {
  publicKey: string;
  privateKey: string;
}

const statuses: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
};

function refuse(c: Context, code: number, message: string, headers: Record<string, string> = {}): Response {
  const body = { error: { code, message, status: statuses[code] ?? 'INTERNAL' } };
  return c.json(body, code as 400, headers);
}

async function giveToken(c: Context, { publicKey, privateKey }: Keys): Promise<Response> {
  const form = await c.req.parseBody();
  try {
    const { payload } = await jwtVerify(String(form.assertion), await importSPKI(publicKey, 'RS256'), {
      issuer: email,
      audience: new URL('/token', c.req.url).href,
      maxTokenAge: '1h',
    });
    if (!scope.test(String(payload.scope))) throw new Error('the claim has no scope that reads sheets');
  } catch (error) {
    return c.json({ error: 'invalid_grant', error_description: `Invalid JWT: ${(error as Error).message}` }, 400);
  }
  const token = new SignJWT({ scope: 'spreadsheets' }).setProtectedHeader({ alg: 'RS256' }).setExpirationTime('1h');
  const access_token = await token.sign(await importPKCS8(privateKey, 'RS256'));
  return c.json({ access_token, expires_in: 3599, token_type: 'Bearer' });
}

async function giveSpreadsheet(c: Context, folder: string, { publicKey }: Keys): Promise<Response> {
  const token = /^Bearer (.+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
  const isKnown = await jwtVerify(token ?? '', await importSPKI(publicKey, 'RS256')).catch(() => null);
  if (isKnown === null) return refuse(c, 401, 'Request had invalid authentication credentials.');
  const id = c.req.param('id') ?? '';
  const file = readServed(folder, id, ['csv', 'json']);
  if (file === undefined) return refuse(c, 404, 'Requested entity was not found.');
  const tabs = tabsOf(file);
  if (tabs === null) return refuse(c, 403, 'The caller does not have permission');
  return answerWith(c, id, tabs);
}

/** The file that was read last: a long sheet is asked for range by range. */
let last: { ending: string; text: string; tabs: Tab[] | null } | undefined;

/** Returns the tabs of a spreadsheet; null where it is not shared. */
function tabsOf({ ending, text }: { ending: string; text: string }): Tab[] | null {
  if (last?.ending === ending && last.text === text) return last.tabs;
  const isShared = ending === 'csv' || (JSON.parse(text) as { shared?: boolean }).shared !== false;
  last = { ending, text, tabs: isShared ? readSpreadsheet({ ending, text }) : null };
  return last.tabs;
}

function answerWith(c: Context, id: string, tabs: Tab[]): Response {
  const ranges = c.req.queries('ranges') ?? [];
  const found = ranges.map((range) => ({ range, part: inRange(tabs, range) }));
  const lost = found.find(({ part }) => part === null);
  if (lost) return refuse(c, 400, `Unable to parse range: ${lost.range}`);
  const fields = c.req.query('fields');
  const withData = c.req.query('includeGridData') === 'true' || fields !== undefined;
  const shown = ranges.length === 0 ? tabs : tabs.filter((tab) => found.some(({ part }) => part?.tab === tab));
  const sheets = shown.map((tab, index) => {
    const parts =
      ranges.length === 0
        ? [inRange(tabs, tab.title)]
        : found.map(({ part }) => part).filter((part) => part?.tab === tab);
    const data = parts.map((part) => ({
      ...(part?.startRow ? { startRow: part.startRow } : {}),
      ...(part?.startColumn ? { startColumn: part.startColumn } : {}),
      rowData: part?.rows.map((values) => ({ values })),
    }));
    return { properties: propertiesOf(tab, index), ...(withData ? { data } : {}) };
  });
  const whole = { spreadsheetId: id, properties: { title: id }, sheets };
  try {
    return c.json(masked(whole, fields === undefined ? null : readFieldMask(fields)) as object);
  } catch (error) {
    return refuse(c, 400, (error as Error).message);
  }
}

function propertiesOf({ title, sheetId, rows }: Tab, index: number) {
  const columnCount = rows.reduce((most, row) => Math.max(most, row.length), 1);
  return {
    sheetId,
    title,
    index,
    sheetType: 'GRID',
    gridProperties: { rowCount: Math.max(1, rows.length), columnCount },
  };
}
