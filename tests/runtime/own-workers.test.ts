import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { serveWorker } from '../../supabase/functions/_millrace/serve-worker.ts';
import { EndlessBudget } from '../../supabase/functions/_millrace/worker/own-host.ts';
import { projectFolder, runNode } from '../cli/run-command.ts';
import { type Engine, test } from '../support/engine.ts';
import { refusedUrl, startServer } from '../support/http-server.ts';
import { ended, runtimes, secretKey, WorkerSite } from '../support/runtime/worker-process.ts';
import { until } from '../support/until.ts';

const stage = { name: 'work', function: 'flow-work', host: 'worker', batch_size: 2, max_workers: 1 };

async function siteOf(engine: Engine): Promise<WorkerSite> {
  await engine.pipeline([stage]);
  return new WorkerSite(engine).start();
}

const statuses = async (engine: Engine) =>
  (await engine.rows<{ s: string }>('select work_status as s from public.items order by id')).map(({ s }) => s);

const allDone = (engine: Engine) =>
  until(async () => (await statuses(engine)).every((status) => status === 'completed'), 30_000);

test('a stage of host worker wakes no function, and a process that asks for work takes it up', async ({ engine }) => {
  const site = await siteOf(engine);
  site.open();
  await engine.configureWakeUps();
  await engine.queued('work', 5);
  expect(await engine.wakes()).toEqual([]);
  const worker = await site.work();
  await allDone(engine);
  const [health] = await engine.value<{ worker: object }[]>(`select millrace.stages_json('{flow}', true)`);
  expect(health?.worker).toEqual({ release: 'r7', seen_at: expect.any(String) });
  worker.kill('SIGTERM');
  expect(await ended(worker)).toBe(0);
});

test('SIGTERM lets the handlers that run end, and leaves the rest in the queue', async ({ engine }) => {
  const site = await siteOf(engine);
  const [first, second, ...others] = await engine.queued('work', 5);
  const worker = await site.work();
  expect(await site.atGate(2)).toEqual([first, second]);
  worker.kill('SIGTERM');
  await until(() => site.calls.some(({ name }) => name === 'millrace_leave'));
  site.open();
  expect(await ended(worker)).toBe(0);
  expect(await statuses(engine)).toEqual(['completed', 'completed', ...others.map(() => 'queued')]);
});

test('a second SIGTERM puts back the rows of handlers that still run', async ({ engine }) => {
  const site = await siteOf(engine);
  await engine.queued('work', 3);
  const worker = await site.work();
  await site.atGate(2);
  worker.kill('SIGTERM');
  await until(() => site.calls.some(({ name }) => name === 'millrace_leave'));
  worker.kill('SIGTERM');
  expect(await ended(worker)).toBe(0);
  expect(await statuses(engine)).toEqual(['queued', 'queued', 'queued']);
});

test.for(runtimes)('kill -9 of a worker on %s loses nothing: the next works its rows', async (by, { engine }) => {
  const site = await siteOf(engine);
  await engine.queued('work', 5);
  const worker = await site.work(by);
  await site.atGate(2);
  worker.kill('SIGKILL');
  expect(await ended(worker)).toBe('SIGKILL');
  await site.atGate(0);
  await engine.advance('61 seconds');
  await engine.sweepAll();
  await engine.advance('61 seconds');
  site.open();
  await site.work(by);
  await allDone(engine);
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'completed'`)).toBe(5);
  // A process of one's own tells nothing of the limits of an isolate.
  expect(await engine.value('select count(*)::int from millrace.row_costs')).toBe(0);
});

/** An answer of chat completions that calls the tool `look`, or that says this. */
function chatAnswer(turn: number, said?: string) {
  const call = { id: `call_${turn}`, type: 'function', function: { name: 'look', arguments: `{"page":${turn}}` } };
  const message = { role: 'assistant', content: said ?? null, ...(said ? {} : { tool_calls: [call] }) };
  const choices = [{ index: 0, message, finish_reason: said ? 'stop' : 'tool_calls' }];
  const usage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 };
  return { id: `chat-${turn}`, object: 'chat.completion', created: 1, model: 'a-model', choices, usage };
}

test('an agent of the AI SDK that is killed by kill -9 resumes behind its last turn', async ({ engine }) => {
  const agent = { debug: true };
  await engine.pipeline([{ ...stage, kind: 'agent', agent, batch_size: 1 }]);
  const site = await new WorkerSite(engine).start();
  const model = await startServer(({ body }) => {
    const turn = JSON.parse(body).messages.filter(({ role }: { role: string }) => role === 'tool').length + 1;
    return { json: chatAnswer(turn, turn > 2 ? 'Lit.' : undefined) };
  });
  const [id] = await engine.queued('work');
  const work = () => site.work('node', { MODEL_URL: model.url }, 'tests/support/runtime/agent-main.ts');
  const worker = await work();
  await site.atGate(1);
  site.pass(`${id}-1`);
  await until(() => site.arrived.includes(`${id}-2`));
  worker.kill('SIGKILL');
  expect(await ended(worker)).toBe('SIGKILL');
  await site.atGate(0);
  await engine.advance('61 seconds');
  await engine.sweepAll();
  await engine.advance('61 seconds');
  site.open();
  await work();
  await allDone(engine);
  expect(await engine.rows('select work_result as r from public.items')).toEqual([{ r: { said: 'Lit.' } }]);
  expect(model.received).toHaveLength(3);
  expect(site.arrived).toEqual([`${id}-1`, `${id}-2`, `${id}-2`]);
  expect(await engine.rows('select what, tool, output, tokens::int from millrace.agent_log order by seq')).toEqual([
    { what: 'calls look', tool: 'look', output: null, tokens: 11 },
    { what: 'answers', tool: 'look', output: '{"page":1,"on":"the lamp is lit"}', tokens: null },
    { what: 'calls look', tool: 'look', output: null, tokens: 11 },
    { what: 'answers', tool: 'look', output: '{"page":2,"on":"the lamp is lit"}', tokens: null },
    { what: 'answers', tool: null, output: 'Lit.', tokens: 11 },
  ]);
});

test('a process that is to end saves what it has finished for half a minute after the database last answered', () => {
  vi.useFakeTimers({ now: 0, toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const budget = new EndlessBudget();
  budget.answered();
  expect(budget.savesUntil).toBe(Number.POSITIVE_INFINITY);
  budget.close();
  vi.setSystemTime(120_000);
  budget.answered();
  expect(budget.savesUntil).toBe(150_000);
});

test('a process without a stage is refused, and told what to give', async () => {
  await expect(serveWorker([])).rejects.toThrow('serveWorker was given no stage: name one or more in its list.');
});

test('two workers at once hold no more than max_workers allows', async ({ engine }) => {
  const site = await siteOf(engine);
  await engine.queued('work', 6);
  await site.work();
  await site.atGate(2);
  await site.work();
  await until(() => site.calls.some(({ name, answer }) => name === 'millrace_claim' && answer.status === 'refused'));
  expect(await site.atGate(2)).toHaveLength(2);
  site.open();
  await allDone(engine);
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'completed'`)).toBe(6);
});

test('a worker with an address is woken there, signed as functions are', async ({ engine }) => {
  const site = await siteOf(engine);
  site.open();
  await engine.configureWakeUps('http://project.test', 'a wake-up secret of the project');
  const url = await refusedUrl();
  await site.work('node', {
    MILLRACE_WORKER_URL: url,
    PORT: new URL(url).port,
    MILLRACE_WAKE_SECRET: 'a wake-up secret of the project',
  });
  await until(() => engine.value(`select seen ->> 'url' from millrace.stages`));
  await engine.queued('work');
  const [wake] = await engine.wakes();
  expect(wake).toMatchObject({ url: `${url}/`, body: { pipeline: 'flow', stage: 'work' } });
  const send = (headers: Record<string, string>, body: unknown) =>
    fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }).then(({ status }) => status);
  expect(await send({}, wake?.body)).toBe(401);
  expect(await send({ apikey: secretKey }, { pipeline: 'flow', stage: 'other' })).toBe(409);
  expect((await fetch(url)).status).toBe(200);
  expect(await send(wake?.headers as Record<string, string>, wake?.body)).toBe(202);
  await allDone(engine);
});

test('a stage at which no worker asks for work is named, with the command that starts one', async ({ engine }) => {
  await engine.pipeline([stage]);
  const unattended = () => engine.rows('select why, remedy from millrace.unattended()');
  await engine.queued('work');
  await engine.sweepAll();
  await engine.advance('31 seconds');
  await engine.sweepAll();
  await engine.advance('11 seconds');
  const remedy = 'npx millrace work starts a worker; see the log of one that runs';
  expect(await unattended()).toEqual([
    { why: 'nobody takes it up: its worker is silent: none has asked for work', remedy },
  ]);
  const attend = `select public.millrace_attend('[{"pipeline": "flow", "stage": "work"},
    {"pipeline": "flow", "stage": "other"}]')`;
  expect(await engine.value(attend)).toEqual({ stages: ['ready', 'unknown'] });
  await engine.advance('1 minute');
  expect((await unattended())[0]?.why).toMatch(/its worker is silent: it last asked for work at 2026-11-02/);
  await engine.value(
    `select public.millrace_attend('[{"pipeline": "flow", "stage": "work"}]', null, 'https://w.test')`,
  );
  await engine.advance('1 minute');
  expect((await unattended())[0]?.why).toMatch(/: the worker at https:\/\/w.test is silent: it last asked/);
  await engine.define({ ...(await engine.pipeline([{ ...stage, host: 'function' }])) });
  expect(await engine.value(attend)).toEqual({ stages: ['function', 'unknown'] });
});

test('a stage that moved from its function to workers tells nothing of what the function answered', async ({
  engine,
}) => {
  await engine.pipeline([{ ...stage, host: 'function' }]);
  await engine.configureWakeUps();
  const why = () => engine.value<string>('select why from millrace.unattended()');
  await engine.queued('work');
  await answerWakes(engine, 202);
  await engine.advance('31 seconds');
  expect(await why()).toMatch(/flow-work answered 202/);
  await engine.pipeline([stage]);
  expect(await why()).toBe('nobody takes it up: its worker is silent: none has asked for work');
});

const attendAt = (url: string | null) =>
  `select public.millrace_attend('[{"pipeline": "flow", "stage": "work"}]', null, ${url === null ? 'null' : `'${url}'`})`;

/** Notes that every wake-up so far was answered with this status. */
async function answerWakes(engine: Engine, status: number): Promise<void> {
  const owner = await engine.database.connect('supabase_admin');
  await owner.query(
    `with sent as (delete from net.http_request_queue returning id)
     insert into net._http_response (id, status_code) select id, $1 from sent`,
    [status],
  );
}

test('a worker that answers 503 is named as a worker, not as a function', async ({ engine }) => {
  await engine.pipeline([stage]);
  await engine.configureWakeUps();
  await engine.value(attendAt('https://w.test'));
  await engine.queued('work');
  await answerWakes(engine, 503);
  await engine.advance('31 seconds');
  expect(await engine.value('select cause from millrace.unattended()')).toBe(
    'the worker at https://w.test answered 503: it did not start',
  );
});

test('the address of a worker that was not there for a week gets no wake-up any more', async ({ engine }) => {
  await engine.pipeline([stage]);
  await engine.configureWakeUps();
  await engine.value(attendAt('https://w.test'));
  const wakes = () => engine.value(`select count(*)::int from net.http_request_queue where url like 'https://w.test%'`);
  await engine.advance('6 days');
  await engine.queued('work');
  expect(await wakes()).toBe(1);
  await answerWakes(engine, 202);
  await engine.advance('2 days');
  await engine.queued('work');
  expect(await wakes()).toBe(0);
  await engine.value(attendAt('https://w.test'));
  await engine.advance('10 seconds');
  await engine.queued('work');
  expect(await wakes()).toBe(1);
});

test('a worker that is scaled to zero is woken before its address is forgotten', async ({ engine }) => {
  await engine.pipeline([stage]);
  await engine.configureWakeUps();
  await engine.value(attendAt('https://w.test'));
  const sweptAfter = async (interval: string) => {
    await engine.advance(interval);
    await engine.sweepAll();
    return (await engine.wakes()).map(({ url }) => url);
  };
  expect(await sweptAfter('143 hours')).toEqual([]);
  expect(await sweptAfter('2 hours')).toEqual(['https://w.test/']);
  await answerWakes(engine, 202);
  await engine.value(attendAt('https://w.test'));
  expect(await sweptAfter('2 hours')).toEqual([]);
  expect(await sweptAfter('8 days')).toEqual([]);
});

test.for([
  [`'{}', null, null`, 'p_stages is object, but must be a list'],
  [`null`, 'p_stages is null, but must be a list'],
])('millrace_attend(%s) is refused with the remedy', async ([args, message], { engine }) => {
  await expect(engine.value(`select public.millrace_attend(${args})`)).rejects.toThrow(message);
});

const definition = `import { definePipeline } from '../_millrace/mod.ts';
export const flow = definePipeline({
  name: 'flow',
  entity: { table: 'public.items', key: 'id', projection: 'columns' },
  stages: {
    work: { kind: 'function', function: 'flow-work', host: 'worker', batchSize: 2, maxWorkers: 1 },
    rest: { kind: 'function', function: 'flow-rest', needs: ['work'] },
  },
});
`;
const handler = `import { z } from 'zod';
import { defineStage } from '../_millrace/mod.ts';
import { flow } from '../_pipelines/flow.ts';
export const work = defineStage({
  pipeline: flow,
  stage: 'work',
  input: z.object({ entity: z.object({ id: z.number() }) }),
  output: z.object({ sign: z.string() }),
  handler: async ({ entity }, { env }) => {
    await fetch(\`\${env.GATE_URL}/gate/\${entity.id}\`);
    return { sign: env.SIGN ?? '' };
  },
});
`;

/** A project that has this package's runtime, and one stage on a worker. */
async function writeProject(): Promise<string> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'millrace-work-'));
  onTestFinished(() => rm(root, { recursive: true }));
  const functions = path.join(root, 'supabase', 'functions');
  for (const name of ['_pipelines', 'flow-work']) await mkdir(path.join(functions, name), { recursive: true });
  await symlink(path.join(projectFolder, 'supabase/functions/_millrace'), path.join(functions, '_millrace'));
  await writeFile(path.join(root, 'supabase', 'config.toml'), '');
  await writeFile(path.join(functions, '_pipelines', 'flow.ts'), definition);
  await writeFile(path.join(functions, 'flow-work', 'handler.ts'), handler);
  await writeFile(path.join(functions, '.env'), 'SIGN=from the settings');
  return root;
}

test('npx millrace work runs the handlers of stages of host worker without functions, and ends with its npx', async ({
  engine,
}) => {
  await engine.pipeline([stage, { name: 'rest', function: 'flow-rest', needs: ['work'] }]);
  const site = await new WorkerSite(engine).start();
  site.open();
  await engine.queued('work', 3);
  const command = [process.execPath, '--import', 'tsx', 'cli/millrace.ts', 'work'];
  const given = ['--stages', 'flow.work', '--workdir', await writeProject()];
  // A shell between, as npx has one, which hands no signal on.
  const npx = site.spawn('sh', ['-c', '"$@"; true', 'sh', ...command, ...given], { npm_command: 'exec' });
  // Once nobody writes there any more, which is later than the shell's own end.
  const closed = once(npx, 'close');
  await until(async () => (await statuses(engine)).every((status) => status === 'completed'), 60_000);
  expect(await engine.rows('select distinct work_result from public.items')).toEqual([
    { work_result: { sign: 'from the settings' } },
  ]);
  npx.kill('SIGKILL');
  await closed;
});

test('npx millrace work says which stages there are, and how a stage gets a worker', async () => {
  const root = await writeProject();
  const run = (...words: string[]) =>
    runNode(['--import', 'tsx', 'cli/millrace.ts', 'work', '--workdir', root, ...words]);
  expect(await run('--stages', 'rest')).toMatchObject({
    code: 2,
    stderr: '--stages names rest, and the stages on a worker are flow.work.\n',
  });
  await writeFile(path.join(root, 'supabase/functions/_pipelines/flow.ts'), definition.replace("host: 'worker', ", ''));
  expect((await run()).stderr).toMatch(/^No stage runs on a worker: say host: 'worker' in a stage's definition/);
});
