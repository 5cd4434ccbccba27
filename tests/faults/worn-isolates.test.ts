// Isolates that wear out by work that is nobody's fault: each hands over to the next, and nothing is called twice.

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { compiled, definitionOf } from '../support/definitions.ts';
import { functionsFolder } from '../support/stack/functions-folder.ts';
import { until } from '../support/until.ts';
import { worn } from './functions/worn-call.ts';

const rows = 300;
const functions = functionsFolder({
  add: { 'worn-call': path.join(import.meta.dirname, 'functions', 'worn-call.ts') },
});
const calls = new Map<string, number>();
let atOnce = 0;
let most = 0;
/** Answers after 150 to 250 ms, by the row. */
const service = http.createServer((request, response) => {
  const row = request.url ?? '';
  calls.set(row, (calls.get(row) ?? 0) + 1);
  atOnce += 1;
  most = Math.max(most, atOnce);
  const timer = setTimeout(() => response.end(), 150 + (Number(row.slice(1)) % 10) * 10);
  response.once('close', () => {
    clearTimeout(timer);
    atOnce -= 1;
  });
});
let stack: Stack;
let client: pg.Client;

beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  stack = await startStack({ functionsDir: functions.path, services: false, env: { WORN_SERVICE_URL: url } });
  client = new pg.Client({ connectionString: stack.dbUrl });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await stack?.stop();
  service.close();
  functions.remove();
});

test('rows that wear isolates out are each called once, by as many at once as the stage says, and none is to blame', async () => {
  await client.query('create table public.worn (id bigint primary key)');
  await client.query('insert into public.worn select generate_series(1, $1::int)', [rows]);
  await client.query('select millrace.define($1)', [compiled(definitionOf(worn))]);
  await client.query(`select millrace.start('worn', array(select id::text from public.worn))`);
  await until(async () => {
    const { rows } = await client.query(`select from millrace.runs where status = 'running' limit 1`);
    return rows.length === 0;
  }, 120_000);
  expect([...calls.values()].filter((count) => count > 1)).toEqual([]);
  expect(calls.size).toBe(rows);
  expect(most).toBeLessThanOrEqual(20);
  const { rows: isolates } = await client.query('select distinct host from millrace.workers');
  expect(isolates.length).toBeGreaterThan(2);
  const { rows: attempts } = await client.query(
    'select state, isolated, number, count(*)::int as n from millrace.attempts group by 1, 2, 3',
  );
  expect(attempts).toEqual([{ state: 'completed', isolated: false, number: 1, n: rows }]);
  const { rows: costs } = await client.query('select cpu_ms, lives_cut from millrace.row_costs');
  expect(costs).toEqual([{ cpu_ms: expect.any(Number), lives_cut: 0 }]);
  expect((costs[0] as { cpu_ms: number }).cpu_ms).toBeGreaterThan(6);
});
