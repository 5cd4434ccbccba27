// The behaviour that the readers of Google Sheets rest on, asked by Google's own client: of the stand-in, and of the real service where
// SHEETS_CONTRACT_ACCOUNT (a key file's content) and SHEETS_CONTRACT_ID name a sheet with the content of `sheet` below.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { auth, sheets } from '@googleapis/sheets';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Sheets, startSheets } from '../../local/services/sheets/server.ts';
import { accessToken } from '../../supabase/functions/_services/sheets/access-token.ts';
import { sheetsSettings } from '../../supabase/functions/_services/sheets/sheets-settings.ts';

const sheet = {
  tabs: [
    {
      title: 'Jobs',
      sheetId: 0,
      rows: [
        ['Name', 'Link'],
        ['One', 'https://example.com/1'],
        [
          'Two',
          {
            formattedValue: 'a and b',
            textFormatRuns: [
              { format: { link: { uri: 'https://example.com/a' } } },
              { startIndex: 6, format: { link: { uri: 'https://example.com/b' } } },
            ],
          },
        ],
      ],
    },
  ],
};

interface Target {
  id: string;
  serviceAccount: string;
  apiUrl: string | undefined;
  stop(): Promise<void>;
}

async function standIn(): Promise<Target> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-sheets-'));
  fs.writeFileSync(path.join(folder, 'contract.json'), JSON.stringify(sheet));
  const service: Sheets = await startSheets({ folder });
  const stop = async () => {
    await service.stop();
    fs.rmSync(folder, { recursive: true });
  };
  return { id: 'contract', serviceAccount: service.serviceAccount, apiUrl: service.url, stop };
}

const { SHEETS_CONTRACT_ACCOUNT: account, SHEETS_CONTRACT_ID: id } = process.env;
const targets: [string, () => Promise<Target>][] = [['the stand-in', standIn]];
if (account && id) {
  targets.push(['Google', async () => ({ id, serviceAccount: account, apiUrl: undefined, stop: async () => {} })]);
}

describe.each(targets)('%s', (_, start) => {
  let target: Target;
  let client: ReturnType<typeof sheets>;
  beforeAll(async () => {
    target = await start();
    const { GOOGLE_SERVICE_ACCOUNT } = sheetsSettings.parse({ GOOGLE_SERVICE_ACCOUNT: target.serviceAccount });
    const token = await accessToken(GOOGLE_SERVICE_ACCOUNT, { signal: AbortSignal.timeout(20_000), headers: {} });
    const oauth = new auth.OAuth2();
    oauth.setCredentials({ access_token: token });
    client = sheets({
      version: 'v4',
      auth: oauth,
      retry: false,
      ...(target.apiUrl ? { rootUrl: `${target.apiUrl}/` } : {}),
    });
  });
  afterAll(() => target?.stop());

  test('tells tabs and their sizes', async () => {
    const { data } = await client.spreadsheets.get({
      spreadsheetId: target.id,
      fields: 'sheets/properties(sheetId,title,gridProperties(rowCount,columnCount))',
    });
    const [first] = data.sheets ?? [];
    expect(first?.properties?.title).toBe('Jobs');
    expect(first?.properties?.gridProperties?.rowCount).toBeGreaterThanOrEqual(3);
    expect(first?.properties?.gridProperties?.columnCount).toBeGreaterThanOrEqual(2);
  });

  test('gives the cells of a range with the links of their words, and no field that was not asked for', async () => {
    const { data } = await client.spreadsheets.get({
      spreadsheetId: target.id,
      ranges: ["'Jobs'!B2:B3"],
      fields: 'sheets/data/rowData/values(formattedValue,hyperlink,textFormatRuns/format/link/uri)',
    });
    const cells = data.sheets?.[0]?.data?.[0]?.rowData?.map(({ values }) => values?.[0]);
    expect(cells?.[0]).toEqual({ formattedValue: 'https://example.com/1', hyperlink: 'https://example.com/1' });
    expect(cells?.[1]?.hyperlink).toBeUndefined();
    expect(cells?.[1]?.textFormatRuns?.map(({ format }) => format?.link?.uri).filter(Boolean)).toEqual([
      'https://example.com/a',
      'https://example.com/b',
    ]);
  });

  test.each([
    ['a sheet that is not there', { spreadsheetId: 'nowhere-0123456789-0123456789' }, 404],
    ['a tab that is not there', { spreadsheetId: null, ranges: ["'Nothing'!A1:A2"] }, 400],
    ['a mask that is none', { spreadsheetId: null, fields: 'sheets(' }, 400],
  ])('refuses %s', async (_name, { spreadsheetId, ...query }, status) => {
    const asked = client.spreadsheets.get({ spreadsheetId: spreadsheetId ?? target.id, ...query });
    await expect(asked).rejects.toMatchObject({ status });
  });

  test('refuses whoever has no token', async () => {
    const url = `${target.apiUrl ?? 'https://sheets.googleapis.com'}/v4/spreadsheets/${target.id}`;
    const answer = await fetch(url, { headers: { authorization: 'Bearer nothing' } });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } });
  });
});
