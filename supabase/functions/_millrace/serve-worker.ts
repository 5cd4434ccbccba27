import { createServer, type IncomingMessage, type Server } from 'node:http';
import process from 'node:process';
import { z } from 'zod';
import { dataApiRpc } from './engine/engine-client.ts';
import { type Platform, readPlatform, refuseWakeUp } from './engine/platform.ts';
import { MisconfiguredError, messageOf } from './errors.ts';
import { createLog, flushLog } from './log.ts';
import { parseJson } from './parse-json.ts';
import { refuse } from './refuse.ts';
import {
  type Env,
  httpUrl,
  processEnv,
  readSettings,
  settingsFaults,
  wholeNumber,
  workerSettings,
} from './settings.ts';
import type { Stage } from './stage/stage.ts';
import { tellForms } from './worker/tell-form.ts';
import { StageWork } from './worker/work-stages.ts';

/** Settings of a process that works at stages. */
const hostSettings = z.object({
  MILLRACE_WORKER_URL: httpUrl
    .optional()
    .describe('set the address at which the database reaches this worker, or remove it to let the worker ask for work'),
  MILLRACE_WORKER_RELEASE: z.string().optional(),
  WORKER_GRACE_SECONDS: wholeNumber(0, 86_400)
    .optional()
    .describe('set how many seconds the handlers have to end after SIGTERM, or remove it to let all end'),
  PORT: wholeNumber(1, 65_535).optional().describe('set the port on which to answer'),
});

/** The variables in which hosting platforms name the release that runs. */
const releaseVariables = ['RAILWAY_GIT_COMMIT_SHA', 'FLY_IMAGE_REF', 'K_REVISION', 'RENDER_GIT_COMMIT'];
const DEFAULT_PORT = 8080;

const log = createLog({ function: 'worker' });
/** The stage that a wake-up names. */
const named = z.object({ pipeline: z.string(), stage: z.string() });

export interface WorkerOptions {
  /** The environment to read settings from, instead of that of the process. */
  env?: Env;
  /** The release that doctor and status show, unless MILLRACE_WORKER_RELEASE or the hosting platform names one. */
  release?: string;
  /** Ends the worker as SIGTERM does. */
  signal?: AbortSignal;
}

/**
 * Works at stages whose definition says `host: 'worker'`, in this process of Node, Deno or Bun, until SIGTERM or SIGINT. It then
 * puts back at once what has not begun, and resolves when the handlers that run have ended; a second signal, or the end of
 * WORKER_GRACE_SECONDS, stops these too and puts their rows back.
 *
 * Without MILLRACE_WORKER_URL it asks for work, with pauses from 0.2 to 5 s. With it the process answers wake-ups on PORT.
 * Throws a MisconfiguredError where a setting is missing or wrong.
 *
 * @example
 * ```ts
 * const pack = defineStage({
 *   pipeline: orders,
 *   stage: 'pack',
 *   input: z.object({ entity: z.object({ id: z.string() }) }),
 *   output: z.object({ packed: z.string() }),
 *   handler: ({ entity }) => ({ packed: entity.id }),
 * });
 *
 * await serveWorker([pack]);
 * ```
 */
export async function serveWorker(stages: readonly Stage[], options: WorkerOptions = {}): Promise<void> {
  if (stages.length === 0)
    throw new MisconfiguredError('serveWorker was given no stage: name one or more in its list.');
  const env = options.env ?? processEnv();
  const platform = readPlatform(env);
  const settings = readSettings(hostSettings, env);
  const url = settings.MILLRACE_WORKER_URL;
  const deployed = releaseVariables.map((name) => env[name]).find(Boolean);
  const release = settings.MILLRACE_WORKER_RELEASE ?? deployed ?? options.release;
  for (const fault of settingsFaults([workerSettings, ...stages.flatMap((stage) => stage.settings)], env))
    log.error(fault);
  const work = new StageWork({ stages, env, platform, rpc: dataApiRpc({ ...platform, release }), release, url, log });
  const server = url || settings.PORT ? await listen(settings.PORT ?? DEFAULT_PORT, work, platform) : undefined;
  const stopListening = onSignals(work, settings.WORKER_GRACE_SECONDS, options.signal);
  log.info('a worker has started', { stages: stages.map(({ name }) => name), release, url });
  void tellForms(stages, dataApiRpc(platform), log);
  try {
    await work.run();
  } finally {
    stopListening();
    server?.close();
    log.info('a worker has ended');
    flushLog();
  }
}

/** Stops work at the first signal; ends the handlers at the second, or after the grace. Returns how to stop listening. */
function onSignals(work: StageWork, graceSeconds: number | undefined, signal?: AbortSignal): () => void {
  let hasStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    if (hasStopped) return work.end('a second signal');
    hasStopped = true;
    log.info('a worker is to end, and finishes what it has begun');
    work.stop();
    if (graceSeconds !== undefined) timer = setTimeout(() => work.end('the grace is over'), graceSeconds * 1000);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  if (signal?.aborted) stop();
  else signal?.addEventListener('abort', stop);
  return () => {
    clearTimeout(timer);
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
    signal?.removeEventListener('abort', stop);
  };
}

async function listen(port: number, work: StageWork, platform: Platform): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    void answer(incoming, work, platform)
      .catch((error) => refuse(500, 'failed', messageOf(error)))
      .then(async (response) => {
        outgoing.writeHead(response.status, { 'content-type': 'application/json' });
        outgoing.end(await response.text());
      });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, resolve);
  });
  return server;
}

/** Answers a GET of anybody, which is the host's health check, and a wake-up that shows its secret as for a function. */
async function answer(incoming: IncomingMessage, work: StageWork, platform: Platform): Promise<Response> {
  if (incoming.method === 'GET') return Response.json({ status: 'ok' });
  if (incoming.method !== 'POST') return refuse(405, 'method_not_allowed', 'Wake this worker with POST.');
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
  const refusal = refuseWakeUp(new Request('http://worker', { headers }), platform);
  if (refusal) return refusal;
  const asked = named.safeParse(parseJson(await textOf(incoming)));
  if (!asked.success) return refuse(400, 'bad_request', 'Send {"pipeline": "…", "stage": "…"}.');
  const { pipeline, stage } = asked.data;
  if (!work.has(pipeline, stage)) {
    const message = `This worker does not work at stage ${stage} of pipeline ${pipeline}: name it in --stages, or correct MILLRACE_WORKER_URL.`;
    return refuse(409, 'wrong_stage', message);
  }
  work.wake();
  return Response.json({ status: 'draining' }, { status: 202 });
}

/** The number of characters after which reading a wake-up stops. */
const LONGEST_BODY = 10_000;

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming) {
    text += String(chunk);
    if (text.length > LONGEST_BODY) break;
  }
  return text;
}
