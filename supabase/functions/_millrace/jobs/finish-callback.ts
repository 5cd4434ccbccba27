import type { JobOutcomeItem } from '../engine/engine-contract.ts';
import { classify, excerpt, PermanentError, UnavailableError } from '../errors.ts';
import { parseJson } from '../parse-json.ts';
import { refuse } from '../refuse.ts';
import type { Env } from '../settings.ts';
import type { CalledBack, Service } from '../stage/service.ts';
import type { Stage } from '../stage/stage.ts';
import type { CallbackOrigin } from './callback-url.ts';
import { finishJob } from './finish-job.ts';
import type { JobRecorder } from './job-recorder.ts';

const ASK_TIMEOUT_MS = 10_000;
const FINISH_TIMEOUT_MS = 5_000;

/**
 * Finishes the job that a callback is about and records it. the function millrace has verified the callback and says whose it is;
 * `body` is what the service sent. Answers 200 with the engine's verdict (processed before and too late included), 400 for
 * a body that cannot be used, 503 when the service should send it again.
 */
export async function finishCallback(
  stage: Stage,
  origin: CallbackOrigin,
  body: string,
  { env, recorder }: { env: Env; recorder: JobRecorder },
): Promise<Response> {
  let called: CalledBack = { jobId: '' };
  try {
    const service = serviceOf(stage, origin.service);
    called = service.readCallback(parseJson(body));
    const item = await outcomeOf(stage, service, origin, called, env);
    return answerTo(item, await recorder.record([item]));
  } catch (error) {
    // Nothing was recorded: the service should try again, unless that cannot help.
    const { code, message, detail, permanent } = classify(error);
    const { submission, service } = origin;
    await recorder.noteFaults([
      { submission, service, job_id: called.jobId || null, code, message: detail ?? message },
    ]);
    return refuse(permanent ? 400 : 503, code, message);
  }
}

/** Returns the named service, or the stage's only one if `name` is empty. Throws a PermanentError if there is no such service. */
export function serviceOf(stage: Stage, name: string): Service {
  const { services } = stage;
  const found = name === '' && services.length === 1 ? services[0] : services.find((known) => known.name === name);
  if (found) return found;
  const known = services.map((service) => service.name).join(', ') || 'none';
  throw new PermanentError(
    'unknown_service',
    `Stage ${stage.name} of pipeline ${stage.pipeline.name} waits for no service ${JSON.stringify(name)}; those it names ` +
      `are: ${known}. Send metadata.service back as it came, or add the service in the stage's defineStage().`,
  );
}

async function outcomeOf(
  stage: Stage,
  service: Service,
  origin: CallbackOrigin,
  { jobId, job }: CalledBack,
  env: Env,
): Promise<JobOutcomeItem> {
  const finished = job ?? (await askFor(service, jobId, origin, env));
  const signal = AbortSignal.timeout(FINISH_TIMEOUT_MS);
  const { entity_id: entityId, trace_id: traceId, submission } = origin;
  const outcome = await finishJob(stage, finished, { env, entityId, traceId, submission, signal });
  return { ...origin, service: service.name, job_id: jobId, ...outcome };
}

/** Resolves to the job that a callback has only named. */
async function askFor(service: Service, jobId: string, origin: CallbackOrigin, env: Env): Promise<unknown> {
  const { trace_id: traceId, submission } = origin;
  const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
  const asked = await service.poll?.(jobId, { env, signal, traceId, submission });
  if (asked?.state === 'finished') return asked.job;
  const named = `job ${excerpt(jobId, 100)}`;
  if (!asked) throw new PermanentError('bad_callback', `The callback says nothing of ${named} but its name.`);
  if (asked.state === 'lost') throw new PermanentError('unknown_job', `The service ${service.name} knows no ${named}.`);
  throw new UnavailableError('unfinished', `The ${named} is not finished: send this again shortly.`);
}

function answerTo(
  item: JobOutcomeItem,
  [verdict]: { verdict: string; reason?: string | null | undefined }[],
): Response {
  if (verdict?.verdict === 'busy') return refuse(503, 'busy', 'The row is locked: send this again shortly.');
  if (!verdict || verdict.verdict === 'rejected') {
    return refuse(400, 'rejected', verdict?.reason ?? `the engine gave no verdict on job ${item.job_id}`);
  }
  return Response.json({ verdict: verdict.verdict, reason: verdict.reason ?? null });
}
