import { z } from 'zod';
import { dataApiRpc, type Rpc } from '../engine/engine-client.ts';
import { type Platform, readPlatform, refuseWakeUp } from '../engine/platform.ts';
import { messageOf } from '../errors.ts';
import { createLog } from '../log.ts';
import { refuse } from '../refuse.ts';
import { type Env, httpUrl, readSettings, workerSettings } from '../settings.ts';
import { type Budget, createBudget } from '../worker/budget.ts';
import { type Collector, type Posted, postSpans } from './post-spans.ts';
import { type EndedRun, type TakenTraces, takenTraces } from './trace-rows.ts';
import { writeTraces } from './write-spans.ts';

/** The most runs of one request. */
const MOST_RUNS = 200;
const ANSWER_TIME_MS = 15_000;
const CALL_TIME_MS = 8_000;
const ROUND_TIME_MS = ANSWER_TIME_MS + CALL_TIME_MS;

const log = createLog({ function: 'millrace' });

/** Settings of sending, by the names of OpenTelemetry. */
export const traceSettings = z.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.describe(
    'set the address of your collector, such as https://otlp.example.com; /v1/traces is added',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .default('')
    .transform((text, context) => {
      const headers = headersOf(text);
      if (headers) return headers;
      context.addIssue({ code: 'custom', message: 'is no list of name=value by commas' });
      return z.NEVER;
    })
    .describe('set the headers that your collector asks for, such as api-key=…, or remove it'),
  OTEL_SERVICE_NAME: z.string().default('millrace').describe('set the name of the service, or remove it'),
});

/** Reads `name=value,name=value`, whose values may be percent-encoded; null where it is no such list. */
function headersOf(text: string): Record<string, string> | null {
  try {
    const pairs = text
      .split(',')
      .filter((part) => part.trim())
      .map((part) => {
        const [, name = '', value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(part) ?? [];
        return [name, decodeURIComponent(value)] as const;
      });
    return Object.fromEntries(new Headers(pairs.map(([name, value]) => [name, value] as [string, string])));
  } catch {
    return null;
  }
}

/**
 * Answers a wake-up of the function that sends traces: 202 when it goes to work, 401 without the wake-up secret or a secret
 * key, 500 without settings, which the row of public.trace_exports says too.
 */
export function answerTracesWakeUp(
  env: Env,
  background: (work: Promise<void>) => void,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      const platform = readPlatform(env);
      const refusal = refuseWakeUp(request, platform);
      if (refusal) return refusal;
      const budget = createBudget(readSettings(workerSettings, env).WORKER_SECONDS);
      background(sendUntilDone(rpcFor(platform), () => senderOf(env), budget));
      return Response.json({ status: 'sending' }, { status: 202 });
    } catch (error) {
      log.error(messageOf(error));
      return refuse(500, 'misconfigured', messageOf(error));
    }
  };
}

type Sender = (pipeline: string, runs: EndedRun[]) => Promise<Posted>;

function senderOf(env: Env): Sender {
  const settings = readSettings(traceSettings, env);
  const collector: Collector = {
    url: `${settings.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`,
    headers: settings.OTEL_EXPORTER_OTLP_HEADERS,
    timeoutMs: ANSWER_TIME_MS,
  };
  return (pipeline, runs) => postSpans(writeTraces(pipeline, runs, settings.OTEL_SERVICE_NAME), collector);
}

async function sendUntilDone(rpc: Rpc, sender: () => Sender, budget: Pick<Budget, 'fits'>): Promise<void> {
  try {
    await sendTraces(rpc, sender, budget);
  } catch (error) {
    log.error('sending traces ended early, the next wake-up goes on', { error: messageOf(error) });
  }
}

/**
 * Takes runs that have ended, sends their spans and records what the collector took, until none is left or the time is used.
 * A collector that refuses a request for good gets half as many runs; a single run that it refuses is passed over, with an error
 * in the engine's log. After any other refusal the pipeline waits.
 */
export async function sendTraces(rpc: Rpc, sender: () => Sender, budget: Pick<Budget, 'fits'>): Promise<void> {
  let most = MOST_RUNS;
  while (budget.fits(ROUND_TIME_MS)) {
    const taken = takenTraces.parse(await callDatabase(rpc, 'take_traces', { p_runs: most }));
    if (!taken) return;
    const posted = await post(sender, taken);
    if (posted.taken || !posted.isTooMuch) {
      await note(rpc, taken, posted);
      if (posted.taken) most = Math.min(2 * most, MOST_RUNS);
    } else if (taken.runs.length > 1) {
      most = Math.floor(taken.runs.length / 2);
      await note(rpc, taken, { ...posted, waitSeconds: 0, fault: null });
    } else {
      // A collector that refuses a request without spans as well refuses the address, not the run.
      const { taken: isWell } = await post(sender, { ...taken, runs: [] }, true);
      const fault = `run ${taken.runs[0]?.run} was passed over: ${posted.fault}`;
      await note(rpc, taken, isWell ? { taken: true, fault } : posted);
    }
    if (posted.fault) log.warn('a collector refused traces', { pipeline: taken.pipeline, error: posted.fault });
  }
}

/** Sends spans, where there are any or `always`. */
async function post(sender: () => Sender, { pipeline, runs }: TakenTraces, always = false): Promise<Posted> {
  try {
    return runs.length > 0 || always ? await sender()(pipeline, runs) : { taken: true, fault: null };
  } catch (error) {
    return { taken: false, fault: messageOf(error), isTooMuch: false, waitSeconds: 60 };
  }
}

type Noted = { taken: true; fault: string | null } | { taken: false; fault: string | null; waitSeconds: number };

async function note(rpc: Rpc, { pipeline, from, to }: TakenTraces, noted: Noted): Promise<void> {
  await callDatabase(rpc, 'note_traces', {
    p_pipeline: pipeline,
    p_from_at: from.at,
    p_from_run: from.run,
    p_to_at: noted.taken ? to.at : null,
    p_to_run: noted.taken ? to.run : null,
    p_fault: noted.fault,
    p_wait: noted.taken ? 0 : Math.ceil(noted.waitSeconds),
  });
}

async function callDatabase(rpc: Rpc, name: string, args: Record<string, unknown>): Promise<unknown> {
  const { data, error } = await rpc(name, args, AbortSignal.timeout(CALL_TIME_MS));
  if (!error) return data;
  const remedy = error.code === 'PGRST202' ? ': write a migration from _millrace/traces/traces.sql, and push it' : '';
  throw new Error(`${name} failed: ${error.message}${remedy}`);
}
