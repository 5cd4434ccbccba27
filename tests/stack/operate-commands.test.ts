// The operator's commands on a real stack: what they print at a terminal and to programs, what they do, and what the journal says.
import { spawn } from 'node:child_process';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import { pathToFileURL } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import measure from 'fast-string-truncated-width';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { faultText } from '../../cli/operate/say.ts';
import type { JournalEntry, Overview } from '../../operators/answers.ts';
import { type Ended, projectFolder, runNode } from '../cli/run-command.ts';
import { packedProgram } from '../support/cli/packed.ts';
import { OrdersStack, steering } from '../support/stack/orders-stack.ts';
import { assistant, inProcess as commandInProcess } from '../support/stack/run-operate.ts';
import {
  inTerminal as nodeInTerminal,
  type Shown,
  type TerminalOptions,
  withoutOwn,
} from '../support/stack/terminal.ts';

let orders: OrdersStack;
let target: Record<string, string>;
let program: string;

beforeAll(async () => {
  [orders, program] = await Promise.all([OrdersStack.start(), packedProgram()]);
  target = { SUPABASE_URL: orders.stack.apiUrl, SUPABASE_SECRET_KEY: orders.stack.secretKey };
  await orders.rows('insert into public.orders (name) values ($1)', [steering]);
  await orders.rows(`select millrace.start('orders', max(id)::text) from public.orders`);
});
afterAll(() => orders?.stop());

const millrace = (args: string[], env: Record<string, string> = target): Promise<Ended> =>
  runNode([program, ...args], { env });
const inTerminal = (args: string[], options?: TerminalOptions) => nodeInTerminal([program, ...args], options);

/** Several commands one after the other in one process at a terminal, which spares each of them the start of Node. */
async function eachInTerminal(lines: string[][], options: TerminalOptions): Promise<Shown[]> {
  const all = `for (const [at, args] of ${JSON.stringify(lines)}.entries()) {
    process.argv = [process.execPath, 'millrace', ...args];
    process.exitCode = 0;
    await import('${pathToFileURL(program)}?' + at);
    console.log('ENDED ' + process.exitCode);
  }`;
  const { text } = await nodeInTerminal(['--input-type=module', '--eval', all], options);
  expect(text).not.toContain('THE TERMINAL IS NOT AS IT WAS');
  return [...text.matchAll(/(.*?)ENDED (\d+)\r*\n/gs)].map(([, shown = '', code]) => ({
    code: Number(code),
    text: shown,
    lines: withoutOwn(shown).split(/\r*\n/),
  }));
}

const inProcess = (args: string[], env = target) => commandInProcess(args, env);

const json = async (...args: string[]) => JSON.parse((await inProcess([...args, '--json'])).stdout);
const lastLine = async (): Promise<JournalEntry> =>
  (await orders.value<{ entries: JournalEntry[] }>(`select public.millrace_journal('{"limit": 1}')`))
    .entries[0] as JournalEntry;
const runAt = (status: string, stage = 'invoice') =>
  orders.value<number>(
    `select min(r.id)::int from millrace.runs r join millrace.attempts a on a.run_id = r.id
     join millrace.stages s on s.id = a.stage_id
     where r.status = $1 and s.name = $2 and a.state in ('failed', 'queued', 'waiting') and not a.superseded`,
    [status, stage],
  );

const reads = [
  ['status'],
  ['status', 'orders', '--stage', 'price'],
  ['runs'],
  ['runs', 'orders', '--status', 'failed'],
  ['show', '1'],
  ['show', '8'],
  ['logs', '8'],
  ['dead'],
  ['alerts', '--all'],
  ['journal'],
];

test.each([60, 200])('no line is wider than a terminal of %i columns, and nothing steers it', async (columns) => {
  const shown = await eachInTerminal(reads, { columns, env: target });
  expect(shown).toHaveLength(reads.length);
  for (const [place, { code, text, lines }] of shown.entries()) {
    const told = { args: reads[place], text };
    expect(code, JSON.stringify(told)).toBe(reads[place]?.[0] === 'status' ? 1 : 0);
    // A line that `dead` offers to paste is never cut.
    const wide = lines.filter((line) => measure(line).width > columns && !/^(Look|Retry): /.test(line));
    expect({ ...told, wide }).toEqual({ ...told, wide: [] });
    expect(withoutOwn(text).match(/[^\P{C}\r\n]/u), JSON.stringify(told)).toBe(null);
  }
  expect(shown[2]?.text).toContain('⟨U+001B');
  expect(shown[5]?.text).toContain('no_address');
  expect(shown[5]?.text).toContain('Hint: Write the address into the order, then retry.');
  expect(shown[0]?.text).toContain('\u001b[31m');
});

test('without a terminal, and with NO_COLOR, there is no colour, and nothing is cut', async () => {
  const [piped, plain, ended] = await Promise.all([
    // A person who reads a log of CI sees colours, so it must not say that this is one.
    millrace(['alerts'], { ...target, NO_COLOR: '', CI: '' }),
    inTerminal(['alerts'], { env: { ...target, NO_COLOR: '1' }, columns: 60 }),
    // An assistant that is gone: what it would say is at its end.
    millrace(['mcp']),
  ]);
  expect(ended).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(piped.stdout).not.toContain('\u001b');
  expect(piped.stdout).toMatch(/failed in the last hour, most often as no_address, above 10\n/);
  expect(plain.text).not.toContain('\u001b');
  // The thrown message is in the detail of an error that nobody foresaw, whose message says only that.
  const message = 'Something went wrong that nobody foresaw (unexpected_error).';
  expect(faultText({ code: 'unexpected_error', message, detail: 'boom' })).toBe('unexpected_error: boom');
  expect((await millrace(['show', '8'])).stdout).toMatch(
    /^invoice: no_address: .*nothing on line 3\n {2}Hint: Write.*\n⚠ label: Two lines were cut\. <img.*\nRetry: npx millrace retry 8$/m,
  );
  expect((await millrace(['runs', '--error', 'no_address', '--pipeline', 'orders'])).stdout).toMatch(
    / nothing on line 3$/m,
  );
});

test('programs get what the API answers, in one line that no text breaks out of', async () => {
  const { stdout, code } = await millrace(['runs', 'orders', '--limit', '1', '--json']);
  expect(code).toBe(0);
  expect(stdout.match(/[^\P{C}\n]/u)).toBe(null);
  expect(JSON.parse(stdout).runs[0]).toMatchObject({ pipeline: 'orders', label: steering });
  // To people no text is drawn over others.
  expect((await inProcess(['runs', 'orders', '--limit', '1'])).stdout).toContain(`e${'\u0301'.repeat(4)}…`);
  const standing = await json('status', 'orders', '--stage', 'price');
  expect(standing).toMatchObject({
    ok: false,
    pipelines: [{ pipeline: 'orders' }],
    range: '1h',
    figures: { pipeline: 'orders' },
    touched: { whole: true, made: [{ rows: expect.any(Number), run_ids: expect.any(Array) }] },
  });
  const deep = await orders.value<number>(
    `select id::int from millrace.attempts where output::text like '[[[[[%' limit 1`,
  );
  expect((await millrace(['show', '--attempt', String(deep)])).stdout).toContain('[Array]');
  const large = await orders.value<number>(
    `select max(id)::int from millrace.attempts where length(output::text) > 1e6`,
  );
  const shown = await millrace(['show', '--attempt', String(large)]);
  expect(shown.stdout.length).toBeLessThan(10_000);
  expect(shown.stdout).toMatch(/the beginning of 10\d{5} bytes/);
});

test('a result is told with what made it and went into it, by its stage or its column', async () => {
  const priced = `select min(a.run_id) from millrace.attempts a join millrace.stages s on s.id = a.stage_id
    where s.name = 'price' and a.state = 'completed' and not a.superseded`;
  const run = String(await orders.value(priced));
  const { stdout, code, stderr } = await inProcess(['show', run, '--origin', 'price_result']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stripVTControlCharacters(stdout)).toMatch(
    /^stage +state +needs +made by\nread +completed +\S.*attempt \d+\nprice .* read +\S.*attempt \d+\n$/,
  );
  expect((await json('show', run, '--origin', 'price')).stages).toHaveLength(2);
  expect(await inProcess(['show', run, '--origin', 'pricing'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`Run ${run} has no stage pricing. Its stages: read, price`),
  });
});

test('ctrl-C ends watch and leaves the terminal as it was; without one it says what to ask instead', async () => {
  const watched = await inTerminal(['watch', 'orders'], {
    columns: 60,
    rows: 20,
    env: target,
    types: [['Failed last', '\u0003']],
  });
  expect(watched.code).toBe(0);
  expect(watched.text.indexOf('\u001b[?1049h\u001b[?25l')).toBeGreaterThanOrEqual(0);
  expect(watched.text.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
  const frame = watched.lines.slice(
    0,
    watched.lines.findIndex((line) => line.includes('^C')),
  );
  expect(frame.length).toBeLessThan(20);
  expect(frame.filter((line) => measure(line).width > 60)).toEqual([]);
  expect(watched.text).not.toContain('THE TERMINAL IS NOT AS IT WAS');
  const piped = await millrace(['watch']);
  expect(piped).toMatchObject({ code: 2, stderr: expect.stringContaining('millrace status --json') });
});

test('show --watch draws a run or an attempt until it ends, and prints it where it stands', async () => {
  const watched = await inTerminal(['show', '8', '--watch'], { columns: 100, env: target });
  expect(watched.code).toBe(0);
  expect(watched.text).not.toContain('THE TERMINAL IS NOT AS IT WAS');
  // After the other screen was given back.
  expect(watched.text.slice(watched.text.lastIndexOf('\u001b[?1049l'))).toContain('run 8 of orders: failed');
  const failed = await orders.value<number>(
    `select max(id)::int from millrace.attempts where run_id = 8 and state = 'failed'`,
  );
  const one = await inTerminal(['show', '--attempt', `${failed}`, '--watch'], { columns: 100, env: target });
  expect(one.text).toContain('\u001b[?1049h');
  expect(one.text.slice(one.text.lastIndexOf('\u001b[?1049l'))).toContain(`attempt ${failed} at invoice: failed`);
  expect(await millrace(['show', '8', '--watch'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('show RUN --json'),
  });
});

test('logs prints what the newest attempts of a run have kept', async () => {
  await orders.rows(
    `update millrace.attempts set usage = coalesce(usage, '{}') || '{"log": "looked for an address\\nfound none"}'
    where run_id = 8 and state = 'failed'`,
  );
  const { stdout } = await inProcess(['logs', '8']);
  expect(withoutOwn(stdout), 'in colours or without').toMatch(
    /^attempt \d+ at invoice, try 1, .*\n.*no_address.*\n {2}looked for an address\n {2}found none\n$/,
  );
  expect((await inProcess(['logs', '8', '--stage', 'label'])).stdout).toContain('No attempt has kept log lines');
  // The API answers with the log of ten attempts: earlier ones are named, not said to have none.
  await orders.rows(`insert into millrace.attempts (run_id, stage_id, number, state, created_at, superseded)
    select run_id, stage_id, 100 + n, 'cancelled', created_at, true
    from millrace.attempts, generate_series(1, 10) n where run_id = 8 and state = 'failed'`);
  expect((await inProcess(['logs', '8'])).stdout).toMatch(
    /^Of failed tries before the newest 10: npx millrace show --attempt N, for \d+\.\n$/,
  );
  await orders.rows('delete from millrace.attempts where run_id = 8 and number > 100');
  expect(await inProcess(['logs'])).toMatchObject({ code: 2, stderr: 'Name a run.' });
});

test('--web names the place of the page that shows the same, where the page is served', async () => {
  const before = await orders.value(`select millrace.setting('page_url')`);
  const page = await new Promise<http.Server>((resolve) => {
    const server = http
      .createServer((_, response) => response.end('page'))
      .listen(0, '127.0.0.1', () => resolve(server));
  });
  const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}/operate/`;
  const keep = (address: unknown) =>
    orders.rows(`update millrace.settings set value = $1 where name = 'page_url'`, [address]);
  await keep(url);
  const placed = async (...args: string[]) => (await inProcess([...args, '--web'])).stdout;
  expect(await placed('show', '8')).toBe(`${url}#/run/8\n`);
  expect(await placed('runs', 'orders', '--status', 'failed', '--error', 'no_address')).toBe(
    `${url}#/runs?status=failed&error_code=no_address&pipeline=orders\n`,
  );
  expect((await inProcess(['dead', 'orders', '-w'])).stdout).toBe(`${url}#/dead?pipeline=orders\n`);
  page.close();
  expect(await inProcess(['alerts', '-w'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('npx millrace open'),
  });
  await keep(before);
});

test('watch draws anew in the size that its window is dragged to', async () => {
  const { code, text } = await inTerminal(['watch', 'orders'], {
    columns: 120,
    env: target,
    types: [
      ['Failed last', { columns: 60, rows: 20 }],
      [/(Failed last.*){2}/s, '\u0003'],
    ],
  });
  expect(code).toBe(0);
  const frames = text.split('\u001b[H').slice(1);
  // It is the drag that draws, and no new look.
  expect(frames[1]).toContain('Rates come with the next look');
  const widths = frames.map((frame) =>
    Math.max(...(frame.split('\u001b[J')[0] ?? '').split(/\r*\n/).map((line) => measure(withoutOwn(line)).width)),
  );
  expect(widths[0]).toBeGreaterThan(60);
  expect(widths[1]).toBeLessThanOrEqual(60);
});

test('ctrl-Z gives the terminal back, and fg draws anew in the size that it has by then', async () => {
  const { code, text } = await inTerminal(['watch', 'orders'], {
    columns: 120,
    env: target,
    whileStopped: 'echo STOPPED; stty cols 60 rows 20',
    types: [
      ['Failed last', '\u001a'],
      [/STOPPED.*Failed last/s, '\u0003'],
    ],
  });
  expect(code).toBe(0);
  const [before = '', after = ''] = text.split('STOPPED');
  expect(before).toMatch(/\[\?25h.*\[\?1049l\W*$/s);
  expect(after).toContain('\u001b[?1049h\u001b[?25l');
  // The first frame: where the machine is slow there are more before the ctrl-C.
  const drawn = (after.split('\u001b[H')[1] ?? '').split('\u001b[J')[0]?.split(/\r*\n/) ?? [];
  expect(drawn.length).toBeGreaterThan(5);
  expect(drawn.length).toBeLessThan(20);
  expect(drawn.map(withoutOwn).filter((line) => measure(line).width > 60)).toEqual([]);
  expect(text).not.toContain('THE TERMINAL IS NOT AS IT WAS');
});

test('each verb on one run does it and is in the journal, by whom and why', async () => {
  const failed = String(await runAt('failed'));
  const shipping = String(await runAt('running', 'ship'));
  const steps: [string[], Partial<JournalEntry>][] = [
    [['retry', failed, '--reason', 'the address came'], { verb: 'retry', reason: 'the address came' }],
    [
      ['fail', failed, '--stage', 'invoice', '--message', 'no, wrong', '--permanent'],
      { verb: 'fail', stage: 'invoice' },
    ],
    [['reset', failed, '--from', 'price'], { verb: 'reset', stage: 'price' }],
    [['skip', shipping, '--stage', 'ship'], { verb: 'skip', stage: 'ship' }],
    [['cancel', failed], { verb: 'cancel' }],
  ];
  for (const [args, line] of steps) {
    expect(await inProcess(args)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Run \d+ is \w+ \(entry \d+/),
    });
    expect(await lastLine()).toMatchObject({ ...line, by: os.userInfo().username, run_ids: [Number(args[1])] });
    if (args[0] !== 'fail') continue;
    // The sentences of the documents about its code.
    const { stdout } = await inProcess(['dead']);
    expect(stdout).toContain('\nfailed_by_hand:\n  A person ended the stage as failed and gave no code.');
    expect(stdout).not.toContain('\nno_address:');
  }
  expect(await orders.value('select status from millrace.runs where id = $1', [failed])).toBe('cancelled');
});

test('a stage is paused, throttled and let go, and an alert silenced', async () => {
  const steps: [string[], Partial<JournalEntry>][] = [
    [['pause', 'orders', 'price', '--reason', 'the model is slow'], { verb: 'pause', stage: 'price' }],
    [['unpause', 'orders', 'price'], { verb: 'unpause' }],
    [
      ['throttle', 'orders', 'read', '--rate', '10/60', '--in-flight', '2', '--minutes', '30', '--reason', 'captchas'],
      {
        verb: 'throttle',
        outcome: expect.objectContaining({ limits: { rate: { count: 10, per_seconds: 60 }, max_in_flight: 2 } }),
      },
    ],
    [['throttle', 'orders', 'read', '--end'], { verb: 'unthrottle' }],
    [['bypass', 'orders', 'read', '--minutes', '5', '--reason', 'no texts'], { verb: 'bypass', reason: 'no texts' }],
    [['bypass', 'orders', 'read', '--end'], { verb: 'end_bypass' }],
    [['bypass', 'orders', 'read', '--take-up', '10'], { verb: 'take_up', outcome: { started: 0 } }],
    [
      ['throttle', '--shared', 'printer', '--in-flight', '5', '--minutes', '5', '--reason', 'paper'],
      { verb: 'throttle' },
    ],
    [['silence', '1', '--minutes', '60', '--reason', 'seen'], { verb: 'silence', reason: 'seen' }],
    [['silence', '1', '--end'], { verb: 'unsilence' }],
    [['silence', '1', '2', '--minutes', '60', '--reason', 'both'], { verb: 'silence', reason: 'both' }],
    [['silence', '2', '--end'], { verb: 'unsilence' }],
    [['silence', '3', '--end'], { verb: 'unsilence' }],
  ];
  for (const [args, line] of steps) {
    const { code, stderr } = await inProcess(args);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
    expect(await lastLine()).toMatchObject(line);
    if (line.verb !== 'bypass') continue;
    const who = `bypassed by ${os.userInfo().username} (no texts)`;
    expect((await inProcess(['status', 'orders'])).stdout).toContain(who);
  }
});

const bulk = ['retry', '--pipeline', 'orders', '--stage', 'read'];

test('a bulk shows how many and asks; without anybody to ask it does nothing', async () => {
  const failedReads = `select count(*)::int from millrace.runs r join millrace.stages s on s.id = r.failed_stage_id
    where r.status = 'failed' and s.name = 'read'`;
  const before = await orders.value<number>(failedReads);
  expect(before).toBeGreaterThan(1);
  const refused = await millrace(bulk);
  expect(refused).toMatchObject({ code: 2, stdout: expect.stringContaining(`retry: ${before} runs`) });
  expect(refused.stderr).toContain('--yes --reason');
  expect(await millrace([...bulk, '--yes'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--reason') });
  const no = await inTerminal(bulk, { env: target, types: [['[y/N]', 'n\r']] });
  expect(no).toMatchObject({ code: 0, text: expect.stringContaining('Nothing was done.') });
  const interrupted = await inTerminal(bulk, { env: target, types: [['[y/N]', '\u0003']] });
  expect(interrupted.text).toContain('Nothing was done.');
  expect(await orders.value<number>(failedReads)).toBe(before);
  expect(await orders.value(`select count(*)::int from millrace.bulks where state in ('previewed', 'running')`)).toBe(
    0,
  );

  const yes = await inTerminal(bulk, {
    env: target,
    types: [
      ['[y/N]', 'y\r'],
      ['Why?', 'the texts are there\r'],
    ],
  });
  expect(yes).toMatchObject({ code: 0, text: expect.stringContaining(`is done: ${before} of ${before} done`) });
  expect(await orders.value<number>(failedReads)).toBe(0);
  const begun = (await json('journal', '--verb', 'begin')).entries[0];
  expect(begun).toMatchObject({ reason: 'the texts are there', by: os.userInfo().username });
});

test('a script says yes and why, and two at once do no run twice', async () => {
  const args = ['retry', '--pipeline', 'orders', '--error', 'no_address', '--yes', '--reason', 'cron', '--json'];
  const dead = await orders.value<number>(`select count(*)::int from millrace.runs
    where status = 'failed' and error_code = 'no_address'`);
  const ended = await Promise.all([millrace(args), millrace(args)]);
  const [one, two] = ended.map(({ stdout, code }) => ({ code, ...JSON.parse(stdout) }));
  expect([one.code, two.code]).toEqual([0, 0]);
  expect(one.done + two.done).toBe(dead);
  const twice = await orders.rows(`select a.parent_id from millrace.attempts a where a.parent_id is not null
    group by a.parent_id having count(*) > 1`);
  expect(twice).toEqual([]);
  await orders.expectSound();
});

const wrong: [args: string[], code: number, message: string][] = [
  [['status', 'nothing'], 3, 'There is no pipeline nothing.'],
  [['status', 'orders', '--range', '2h'], 2, '--range is 2h, but must be 1h, 24h, 7d, 30d.'],
  [['status', '--stage', 'price'], 2, '--stage is a stage of one pipeline: name it.'],
  [['status', 'orders', '--stage', 'nothing'], 3, 'There is no stage nothing in a pipeline orders'],
  [['status', '--range', '24h'], 2, '--range is for the figures of one pipeline: name it.'],
  [['retry', '999999'], 3, 'There is no run 999999.\nLook it up by its row: npx millrace runs --entity KEY.'],
  [['runs', '--stage', 'read'], 3, 'Pipeline is missing'],
  [['runs', '--cursor', 'x'], 3, 'Cursor is "x"'],
  [['retry', '1; drop'], 2, 'must be a whole number'],
  [['retry'], 2, 'Name runs, or --pipeline'],
  [['retry', '1', '--pipeline', 'orders'], 2, 'not both'],
  [['retry', '1', '--minutes', '5'], 2, "Unknown option '--minutes'"],
  [['skip', '1'], 2, 'needs --stage'],
  [['bypass', 'orders', 'read'], 2, 'Say why'],
  [['silence', '--minutes', '5', '--reason', 'x'], 2, 'or say --all'],
  [['throttle', 'orders', 'read', '--rate', 'fast'], 2, '--rate is COUNT/SECONDS'],
  [['status', '--remote=http://example.com'], 2, 'begins with https://'],
  [['status', 'orders', 'read'], 2, 'a word too many: read'],
  [['pause', 'orders', 'price', 'now'], 2, 'a word too many: now'],
  [['mcp', 'orders'], 2, 'a word too many: orders'],
  [['pause', ''], 2, 'an empty word'],
  [['retry', '--pipeline', 'orders', '--yes', '--reason', ' '], 2, '--reason is empty'],
  [['cancel', '1', '--bulk', '1'], 2, 'one of them'],
  [['throttle', 'orders', 'read', '--shared', 'printer', '--end'], 2, 'or --shared LIMIT'],
  [['bypass', 'orders', 'read', '--end', '--take-up', '5'], 2, 'one of them'],
  [['silence', '1', '--all', '--minutes', '5', '--reason', 'x'], 2, 'one of them'],
  [['open', '--port', '99999'], 2, 'a port from 1 to 65535'],
  [['runs', '--status', 'odd'], 3, 'Status is "odd"'],
  [['throttle', 'orders', 'label', '--end'], 3, 'npx millrace status PIPELINE'],
  [['bypass', 'orders', 'label', '--end'], 3, 'npx millrace status PIPELINE'],
  [['silence', '999', '--end'], 3, 'npx millrace journal --verb silence'],
];

test('a wrong command exits with 2, a refusal of the API with 3, and each says what is wrong', async () => {
  for (const [args, code, message] of wrong) {
    const ended = await inProcess(args);
    expect({ args, ...ended }).toMatchObject({ args, code, stdout: '', stderr: expect.stringContaining(message) });
    // The remedy is a command too.
    expect(ended.stderr).not.toMatch(/select |millrace_|^[PF]_?(query|request|ilter)\./i);
  }
});

/** The output of a command whose server answers everything in this way. */
async function heardFrom(answer: http.RequestListener, args = ['status']): Promise<Ended> {
  const server = http.createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const ended = await inProcess(args, { ...target, SUPABASE_URL: `http://127.0.0.1:${port}` });
  server.closeAllConnections();
  server.close();
  return ended;
}

test('a refused key exits with 3 and the reason; an address that is no project of Millrace exits with 4', async () => {
  const { publishableKey } = orders.stack;
  const asUser = async (sub: string) => ({
    SUPABASE_URL: orders.stack.apiUrl,
    SUPABASE_PUBLISHABLE_KEY: publishableKey,
    MILLRACE_USER_TOKEN: await orders.stack.signUserToken({ sub }),
  });
  const otto = await asUser('otto');
  expect((await millrace(['pause', 'orders', 'ship'], otto)).code).toBe(0);
  expect(await lastLine()).toMatchObject({ verb: 'pause', by: 'otto' });
  await orders.rows(`delete from millrace.operators where subject = 'otto'`);
  const [revoked, viewer, wrongKey, nobody, noKey] = await Promise.all([
    millrace(['unpause', 'orders', 'ship'], otto),
    millrace(['cancel', '30'], await asUser('vera')),
    millrace(['status'], { ...target, SUPABASE_SECRET_KEY: 'sb_secret_wrong' }),
    millrace(['status'], { ...target, SUPABASE_URL: 'http://127.0.0.1:9' }),
    millrace(['status'], { ...target, SUPABASE_SECRET_KEY: orders.stack.anonKey }),
  ]);
  expect(noKey).toMatchObject({ code: 3, stderr: expect.stringContaining('set SUPABASE_SECRET_KEY to a secret key') });
  expect(revoked).toMatchObject({ code: 3, stderr: expect.stringContaining('You are no operator here.') });
  expect(viewer).toMatchObject({ code: 3, stderr: expect.stringContaining('You may read here, but not act.') });
  expect(wrongKey.code).toBe(3);
  expect(nobody).toMatchObject({ code: 4, stderr: expect.stringContaining('cannot be reached') });
  const html = await heardFrom((_, response) => response.end('<h1>Welcome</h1>'));
  const old = await heardFrom((_, response) => response.writeHead(404).end('{"code": "PGRST202", "message": "no"}'));
  expect(html).toMatchObject({ code: 4, stderr: expect.stringContaining('no answer of Millrace') });
  expect(old).toMatchObject({ code: 4, stderr: expect.stringContaining('of another release') });
  const newer = await heardFrom((_, response) => response.end('{"now": "2026-11-25T00:00:00Z"}'));
  expect(newer).toMatchObject({ code: 4, stderr: expect.stringContaining('answers without') });
});

test('how long a run takes goes by the project’s clock, and a bulk that is heard of no more goes on', async () => {
  const later = Date.now() + 3 * 3_600_000;
  const run = { run: 1, pipeline: 'orders', entity: '1', status: 'running' };
  const runs = [{ ...run, began_at: new Date(later - 5_400_000).toISOString() }];
  const ahead = await heardFrom(
    (_, response) => {
      response.setHeader('date', new Date(later).toUTCString());
      response.end(JSON.stringify({ runs, next: null }));
    },
    ['runs'],
  );
  expect(ahead.stdout).toMatch(/ 1\.5 h\n/);

  const bulk = { bulk: 7, state: 'previewed', do: { verb: 'retry' }, filter: { pipeline: 'orders' } };
  const cut = await heardFrom(
    async (request, response) => {
      const [body = ''] = await request.setEncoding('utf8').toArray();
      const { verb } = JSON.parse(body).p_request;
      if (verb === 'continue') response.writeHead(503).end();
      else response.end(JSON.stringify({ ...bulk, preview: { runs: '1' } }));
    },
    ['retry', '--pipeline', 'orders', '--yes', '--reason', 'it is back'],
  );
  expect(cut).toMatchObject({ code: 4, stderr: expect.stringContaining('npx millrace cancel --bulk 7 ends it') });
});

test('a reader that closes the pipe early, such as head, causes no error', async () => {
  const child = spawn(process.execPath, ['--import', 'tsx', 'cli/millrace.ts', 'runs'], {
    cwd: projectFolder,
    env: { ...process.env, ...target },
  });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  await new Promise((resolve) => child.once('close', resolve));
  expect(stderr).toBe('');
});

test('a thousand stages fit, and whoever sees no pipeline is told what to do', async () => {
  await orders.rows(`insert into millrace.operators (subject, role, pipelines) values ('nina', 'viewer', '{}')`);
  const nina = {
    SUPABASE_URL: orders.stack.apiUrl,
    SUPABASE_PUBLISHABLE_KEY: orders.stack.publishableKey,
    MILLRACE_USER_TOKEN: await orders.stack.signUserToken({ sub: 'nina' }),
  };
  // The project's own answer, with each pipeline many times: a thousand real ones take a minute to define.
  const overview = await orders.value<Overview>(`select public.millrace_overview('{"quiet": true}')`);
  const times = Math.ceil(1000 / overview.stages.length);
  const many = <Of extends { pipeline: string }>(all: Of[]) =>
    Array.from({ length: times }, (_, n) =>
      all.map((of) => ({ ...of, pipeline: `${of.pipeline}_${n}`, ready: 7 })),
    ).flat();
  const crowd = { ...overview, pipelines: many(overview.pipelines), stages: many(overview.stages) };
  const server = http.createServer(({ url = '' }, response) =>
    response.end(JSON.stringify(url.endsWith('overview') ? crowd : { alerts: [], runs: [] })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const crowded = { ...target, SUPABASE_URL: `http://127.0.0.1:${(server.address() as { port: number }).port}` };
  const [status, watched, none] = await Promise.all([
    inTerminal(['status'], { env: crowded, columns: 60 }),
    inTerminal(['watch'], { env: crowded, columns: 60, rows: 24, types: [['lines more', '\u0003']] }),
    inTerminal(['status'], { env: nina }),
  ]);
  expect(crowd.stages.length).toBeGreaterThanOrEqual(1000);
  expect(status.lines.filter((line) => measure(line).width > 60)).toEqual([]);
  expect(watched.lines.findIndex((line) => line.includes('^C'))).toBeLessThan(24);
  expect(none.text).toContain('The engine is well: ');
  expect(none.text).toContain('There is no pipeline that you see');
  const { client, call } = await assistant(program, [], crowded);
  expect((await call('overview')).data.length).toBeLessThan(20_001);
  await client.close();
  server.closeAllConnections();
  server.close();
});

test('status of a new project says what it lacks before the sweep has noted anything', async () => {
  const overview = await orders.value<Overview>(`select public.millrace_overview('{"quiet": true}')`);
  const well = { ok: true, faults: [], more: 0, quiet_alerts: 1, dead_last_day: '0' };
  const empty = {
    ...overview,
    pipelines: [],
    stages: [],
    bulks: [],
    last_sweep_at: null,
    installed_at: overview.now,
    well,
  };
  const lacking = { what: 'project_url is set', detail: 'missing: npx millrace connect writes it' };
  let health: object = { ok: false, faults: [{ kind: 'finding', ...lacking }], more: 0 };
  const answers = { overview: () => empty, alerts: () => ({ alerts: [] }), health: () => health };
  const server = http.createServer(({ url = '' }, response) => {
    const [, name = ''] = /millrace_(\w+)$/.exec(url) ?? [];
    response.end(JSON.stringify(answers[name as keyof typeof answers]?.() ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const fresh = { ...target, SUPABASE_URL: `http://127.0.0.1:${(server.address() as { port: number }).port}` };
  const told = await inProcess(['status'], fresh);
  expect(told.code).toBe(1);
  expect(told.stdout).toMatch(/project_url is set.*npx millrace connect writes it/s);
  expect(told.stdout).not.toContain('is well');
  health = well;
  const { code, stdout } = await inProcess(['status'], fresh);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      /The engine is well: the first sweep is due .*; 1 open alert is silenced or no longer above its bound\./,
    ),
  });
  expect(stdout).not.toContain('All is well');
  server.closeAllConnections();
  server.close();
});
