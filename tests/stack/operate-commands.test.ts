// The operator's commands on a real stack: what they print at a terminal and to programs, what they do, and what the journal says.
import http from 'node:http';
import os from 'node:os';
import measure from 'fast-string-truncated-width';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Line } from '../../pages/operate/answers.ts';
import { type Ended, runNode } from '../cli/run-command.ts';
import { OrdersStack } from '../support/orders-stack.ts';
import { inTerminal, withoutOwn } from '../support/terminal.ts';

let orders: OrdersStack;
let reach: Record<string, string>;
/** Steers a terminal that obeys it: its title, its screen, a link. */
const steering = '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202Ecod \u001b]8;;https://evil.test\u0007here';

beforeAll(async () => {
  orders = await OrdersStack.start();
  reach = { SUPABASE_URL: orders.stack.apiUrl, SUPABASE_SECRET_KEY: orders.stack.secretKey };
  await orders.rows('insert into public.orders (name) values ($1)', [steering]);
  await orders.rows(`select millrace.start('orders', max(id)::text) from public.orders`);
});
afterAll(() => orders?.stop());

const millrace = (args: string[], env: Record<string, string> = reach): Promise<Ended> =>
  runNode(['--import', 'tsx', 'cli/millrace.ts', ...args], { env });
const json = async (...args: string[]) => JSON.parse((await millrace([...args, '--json'])).stdout);
const lastLine = async (): Promise<Line> =>
  (await orders.value<{ lines: Line[] }>(`select public.millrace_journal('{"limit": 1}')`)).lines[0] as Line;
const runAt = (status: string, stage = 'invoice') =>
  orders.value<number>(
    `select min(r.id)::int from millrace.runs r join millrace.attempts a on a.run_id = r.id
     join millrace.stages s on s.id = a.stage_id
     where r.status = $1 and s.name = $2 and a.state in ('failed', 'queued', 'waiting') and not a.superseded`,
    [status, stage],
  );

const reads = [
  ['status'],
  ['status', 'orders'],
  ['runs'],
  ['runs', 'orders', '--status', 'failed'],
  ['show', '1'],
  ['show', '8'],
  ['dead'],
  ['alerts', '--all'],
  ['journal'],
];

test.each([60, 200])('no line is wider than a terminal of %i columns, and nothing steers it', async (columns) => {
  const shown = await Promise.all(reads.map((args) => inTerminal(args, { columns, env: reach })));
  for (const [place, { code, text, lines }] of shown.entries()) {
    const told = { args: reads[place], text };
    expect(code, JSON.stringify(told)).toBe(reads[place]?.[0] === 'status' ? 1 : 0);
    // What dead offers to paste is never cut.
    const wide = lines.filter((line) => measure(line).width > columns && !/^(Look|Retry): /.test(line));
    expect({ ...told, wide }).toEqual({ ...told, wide: [] });
    expect(withoutOwn(text).match(/[^\P{C}\r\n]/u), JSON.stringify(told)).toBe(null);
    expect(text).not.toContain('THE TERMINAL IS NOT AS IT WAS');
  }
  expect(shown[2]?.text).toContain('⟨U+001B');
  expect(shown[5]?.text).toContain('no_address');
  expect(shown[0]?.text).toContain('\u001b[31m');
});

test('without a terminal, and with NO_COLOR, there is no colour, and nothing is cut', async () => {
  const [piped, plain] = await Promise.all([
    millrace(['alerts'], { ...reach, NO_COLOR: '' }),
    inTerminal(['alerts'], { env: { ...reach, NO_COLOR: '1' }, columns: 60 }),
  ]);
  expect(piped.stdout).not.toContain('\u001b');
  expect(piped.stdout).toMatch(/failed in the last 1 hour, most often as no_address, above 10\n/);
  expect(plain.text).not.toContain('\u001b');
});

test('programs get what the door answers, in one line that no text breaks out of', async () => {
  const { stdout, code } = await millrace(['runs', 'orders', '--limit', '1', '--json']);
  expect(code).toBe(0);
  expect(stdout.match(/[^\P{C}\n]/u)).toBe(null);
  expect(JSON.parse(stdout).runs[0]).toMatchObject({ pipeline: 'orders', label: steering });
  const standing = await json('status', 'orders');
  expect(standing).toMatchObject({ ok: false, pipelines: [{ pipeline: 'orders' }], hour: { pipeline: 'orders' } });
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

test('ctrl-C ends watch and leaves the terminal as it was; without one it says what to ask instead', async () => {
  const watched = await inTerminal(['watch', 'orders'], {
    columns: 60,
    rows: 20,
    env: reach,
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

test('each verb on one run does it and is in the journal, by whom and why', async () => {
  const failed = String(await runAt('failed'));
  const shipping = String(await runAt('running', 'ship'));
  const steps: [string[], Partial<Line>][] = [
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
    expect(await millrace(args)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Run \d+ is \w+ \(line \d+/),
    });
    expect(await lastLine()).toMatchObject({ ...line, by: os.userInfo().username, run_ids: [Number(args[1])] });
  }
  expect(await orders.value('select status from millrace.runs where id = $1', [failed])).toBe('cancelled');
});

test('a stage is paused, throttled and let go, and an alert seen to and silenced', async () => {
  const steps: [string[], Partial<Line>][] = [
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
    [
      ['throttle', '--shared', 'printer', '--in-flight', '5', '--minutes', '5', '--reason', 'paper'],
      { verb: 'throttle' },
    ],
    [['acknowledge', '1'], { verb: 'acknowledge' }],
    [['silence', '1', '--minutes', '60', '--reason', 'seen'], { verb: 'silence', reason: 'seen' }],
    [['silence', '1', '--end'], { verb: 'unsilence' }],
  ];
  for (const [args, line] of steps) {
    const { code, stderr } = await millrace(args);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
    expect(await lastLine()).toMatchObject(line);
  }
});

const bulk = ['retry', '--pipeline', 'orders', '--stage', 'read'];

test('a bulk shows how many and how dear and asks; without anybody to ask it does nothing', async () => {
  const failedReads = `select count(*)::int from millrace.runs r join millrace.stages s on s.id = r.failed_stage_id
    where r.status = 'failed' and s.name = 'read'`;
  const before = await orders.value<number>(failedReads);
  expect(before).toBeGreaterThan(1);
  const refused = await millrace(bulk);
  expect(refused).toMatchObject({ code: 2, stdout: expect.stringContaining(`retry: ${before} runs`) });
  expect(refused.stdout).toMatch(/costs about \$|nobody can tell/);
  expect(refused.stderr).toContain('--yes --reason');
  expect(await millrace([...bulk, '--yes'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--reason') });
  const no = await inTerminal(bulk, { env: reach, types: [['[y/N]', 'n\r']] });
  expect(no).toMatchObject({ code: 0, text: expect.stringContaining('Nothing was done.') });
  const interrupted = await inTerminal(bulk, { env: reach, types: [['[y/N]', '\u0003']] });
  expect(interrupted.text).toContain('Nothing was done.');
  expect(await orders.value<number>(failedReads)).toBe(before);
  expect(await orders.value(`select count(*)::int from millrace.bulks where state in ('previewed', 'running')`)).toBe(
    0,
  );

  const yes = await inTerminal(bulk, {
    env: reach,
    types: [
      ['[y/N]', 'y\r'],
      ['Why?', 'the texts are there\r'],
    ],
  });
  expect(yes).toMatchObject({ code: 0, text: expect.stringContaining(`is done: ${before} of ${before} done`) });
  expect(await orders.value<number>(failedReads)).toBe(0);
  const begun = (await json('journal', '--verb', 'begin')).lines[0];
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
  [['retry', '999999'], 3, 'There is no run 999999.'],
  [['runs', '--stage', 'read'], 3, 'Pipeline is missing'],
  [['runs', '--cursor', 'x'], 3, 'Cursor is "x"'],
  [['retry', '1; drop'], 2, 'must be a whole number'],
  [['retry'], 2, 'Name runs, or --pipeline'],
  [['retry', '1', '--pipeline', 'orders'], 2, 'not both'],
  [['retry', '1', '--minutes', '5'], 2, "Unknown option '--minutes'"],
  [['skip', '1'], 2, 'needs --stage'],
  [['silence', '--minutes', '5', '--reason', 'x'], 2, 'or say --all'],
  [['throttle', 'orders', 'read', '--rate', 'fast'], 2, '--rate is COUNT/SECONDS'],
  [['status', '--remote=http://example.com'], 2, 'begins with https://'],
];

test('what is asked wrongly exits with 2, what the door refuses with 3, and each says what is wrong', async () => {
  const ended = await Promise.all(wrong.map(([args]) => millrace(args)));
  for (const [place, [args, code, message]] of wrong.entries()) {
    expect({ args, ...ended[place] }).toMatchObject({ args, code, stderr: expect.stringContaining(message) });
  }
});

/** What commands hear of a server that answers everything in this way. */
async function heardFrom(answer: http.RequestListener): Promise<Ended> {
  const server = http.createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const ended = await millrace(['status'], { ...reach, SUPABASE_URL: `http://127.0.0.1:${port}` });
  server.closeAllConnections();
  server.close();
  return ended;
}

test('who is not let in hears why (3); what does not answer as a project of Millrace is not reached (4)', async () => {
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
  const [revoked, viewer, wrongKey, nobody, html, old] = await Promise.all([
    millrace(['unpause', 'orders', 'ship'], otto),
    millrace(['cancel', '30'], await asUser('vera')),
    millrace(['status'], { ...reach, SUPABASE_SECRET_KEY: 'sb_secret_wrong' }),
    millrace(['status'], { ...reach, SUPABASE_URL: 'http://127.0.0.1:9' }),
    heardFrom((_, response) => response.end('<h1>Welcome</h1>')),
    heardFrom((_, response) => response.writeHead(404).end('{"code": "PGRST202", "message": "no function"}')),
  ]);
  expect(revoked).toMatchObject({ code: 3, stderr: expect.stringContaining('You are no operator here.') });
  expect(viewer).toMatchObject({ code: 3, stderr: expect.stringContaining('You may read here, but not act.') });
  expect(wrongKey.code).toBe(3);
  expect(nobody).toMatchObject({ code: 4, stderr: expect.stringContaining('cannot be reached') });
  expect(html).toMatchObject({ code: 4, stderr: expect.stringContaining('no answer of Millrace') });
  expect(old).toMatchObject({ code: 4, stderr: expect.stringContaining('of another release') });
  const newer = await heardFrom((_, response) => response.end('{"now": "2026-11-25T00:00:00Z"}'));
  expect(newer).toMatchObject({ code: 4, stderr: expect.stringContaining('answers without') });
});
