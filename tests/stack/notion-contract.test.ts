// The behaviour that the reader of Notion rests on, asked by Notion's own client: of the stand-in, and of the real service where
// NOTION_CONTRACT_TOKEN and NOTION_CONTRACT_DATA_SOURCE name a data source with at least three pages.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { Client, collectAllDataSourceRows, isFullPage } from '@notionhq/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startNotion } from '../../local/services/notion/server.ts';

interface Target {
  client: Client;
  dataSource: string;
  stop(): Promise<void>;
}

const dataSource = 'd'.repeat(32);

async function standIn(): Promise<Target> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-notion-'));
  const pages = [0, 1, 2, 3, 4].map((n) => ({
    id: `${n}`.repeat(32),
    created_time: `2026-11-0${n + 1}T08:00:00.000Z`,
    properties: { Link: `https://example.com/${n}` },
  }));
  fs.writeFileSync(path.join(folder, `${dataSource}.json`), JSON.stringify({ name: 'Jobs', pages }));
  fs.writeFileSync(
    path.join(folder, `${'b'.repeat(32)}.json`),
    JSON.stringify({ name: 'Jobs', database: dataSource, pages: [] }),
  );
  const service = await startNotion({ folder, token: 'secret', most: 3 });
  const stop = async () => {
    await service.stop();
    fs.rmSync(folder, { recursive: true });
  };
  return { client: new Client({ auth: 'secret', baseUrl: service.url, retry: false }), dataSource, stop };
}

const { NOTION_CONTRACT_TOKEN: token, NOTION_CONTRACT_DATA_SOURCE: id } = process.env;
const targets: [string, () => Promise<Target>][] = [['the stand-in', standIn]];
if (token && id) {
  targets.push(['Notion', async () => ({ client: new Client({ auth: token }), dataSource: id, stop: async () => {} })]);
}

describe.each(targets)('%s', (_, start) => {
  let target: Target;
  beforeAll(async () => {
    target = await start();
  });
  afterAll(() => target?.stop());

  const query = (args: object) => target.client.dataSources.query({ data_source_id: target.dataSource, ...args });
  const byCreation = { sorts: [{ timestamp: 'created_time' as const, direction: 'ascending' as const }] };

  test('lists pages with their times, addresses and properties, in the order that is asked for', async () => {
    const { results } = await query({ ...byCreation, page_size: 3 });
    const pages = results.filter((page) => isFullPage(page));
    expect(pages).toHaveLength(3);
    const times = pages.map(({ created_time }) => Date.parse(created_time));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    for (const page of pages) {
      expect(page.url).toMatch(/^https:\/\//);
      for (const property of Object.values(page.properties)) expect(property.type).toEqual(expect.any(String));
    }
  });

  test('goes on from its mark, and refuses one that it does not know', async () => {
    const first = await query({ ...byCreation, page_size: 1 });
    expect(first).toMatchObject({ has_more: true, next_cursor: expect.any(String) });
    const second = await query({ ...byCreation, page_size: 1, start_cursor: first.next_cursor });
    expect(second.results[0]?.id).not.toBe(first.results[0]?.id);
    const foreign = query({ ...byCreation, start_cursor: '00000000-0000-4000-8000-000000000000' });
    await expect(foreign).rejects.toMatchObject({ status: 400, code: 'validation_error' });
  });

  test('leaves out what was created before the time that is asked for', async () => {
    const { results } = await query({ ...byCreation, page_size: 2 });
    const [, second] = results.filter((page) => isFullPage(page));
    const since = second?.created_time ?? '';
    const later = await query({
      ...byCreation,
      filter: { timestamp: 'created_time', created_time: { on_or_after: since } },
    });
    expect(later.results[0]?.id).toBe(second?.id);
  });

  test('is read whole by the client, past its limit of rows', async () => {
    const rows = await collectAllDataSourceRows(target.client, { data_source_id: target.dataSource });
    expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
    expect(rows.length).toBeGreaterThanOrEqual(3);
  });

  test.each([
    ['a data source that is not there', 404, 'object_not_found'],
    ['a wrong token', 401, 'unauthorized'],
  ])('refuses %s', async (what, status, code) => {
    const asked = status === 404 ? query({ data_source_id: '0'.repeat(32) }) : query({ auth: 'wrong' });
    await expect(asked, what).rejects.toMatchObject({ status, code });
  });
});
