import { describe, expect, test } from 'vitest';
import { MisconfiguredError, PermanentError, RetriableError } from '../../supabase/functions/_millrace/errors.ts';
import { finishJob } from '../../supabase/functions/_millrace/jobs/finish-job.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { Finish, FinishContext } from '../../supabase/functions/_millrace/stage/stage.ts';
import { projectClient, projectError, storageStatus } from '../../supabase/functions/_services/project-client.ts';
import { scrape } from '../../supabase/functions/leads-scrape/handler.ts';
import { finishContext } from '../support/context.ts';
import { samples } from '../support/examples/leads-samples.ts';
import { type Reply, refusedUrl, startServer } from '../support/http-server.ts';

const usage = { model: 'm', prompt: 'p', input_tokens: null, output_tokens: null, cost_usd: 0.5 };
const finish = (how: Finish<unknown>, context: Partial<FinishContext> = {}) =>
  finishJob({ ...scrape, finish: how }, { job_id: 'j' }, { ...finishContext(), ...context });

/** Writes a file as a stage's finish function does. */
const write: Finish<unknown> = async (_, { env, entityId }) => {
  const { error } = await projectClient(env).storage.from('texts').upload(`${entityId}.txt`, 'text', { upsert: true });
  if (error) throw projectError(storageStatus(error), error, `Writing ${entityId}.txt`);
  return samples.scrape;
};
const projectAt = (url: string): Env => ({ SUPABASE_URL: url, SUPABASE_SECRET_KEYS: '{"default":"k"}' });

describe('a finish function', () => {
  test('may write to Storage, under its entity, before it answers', async () => {
    const server = await startServer(() => ({ json: { Id: '1', Key: 'texts/7.txt' } }));
    const outcome = await finish(write, { env: projectAt(server.url), entityId: '7' });
    expect(outcome).toEqual({ outcome: 'completed', result: samples.scrape });
    expect(server.received[0]).toMatchObject({ method: 'POST', path: '/storage/v1/object/texts/7.txt' });
  });

  test.each([
    new PermanentError('no_speech', 'silence'),
    new RetriableError('server_error', 'the service failed'),
    new TypeError('a mistake'),
  ])('ends the attempt with what it throws, and with what the job used up: %s', async (error) => {
    const outcome = await finish(async (_, context) => {
      context.reportUsage(usage);
      throw error;
    });
    expect(outcome).toMatchObject({ outcome: 'failed', usage });
  });
});

describe('a paid job is kept, to be finished later,', () => {
  test('while a setting is missing', async () => {
    const error = new MisconfiguredError('X is not set');
    await expect(finish(() => Promise.reject(error))).rejects.toBe(error);
  });

  test.each<Reply>([
    { status: 500, json: { message: 'no' } },
    { status: 400, json: { statusCode: '503', message: 'no' } },
    { status: 429, json: { message: 'no' } },
  ])('while Storage answers %j', async (reply) => {
    const server = await startServer(() => reply);
    await expect(finish(write, { env: projectAt(server.url) })).rejects.toMatchObject({ permanent: false });
  });

  test('while Storage cannot be reached', async () => {
    const env = projectAt(await refusedUrl());
    await expect(finish(write, { env })).rejects.toMatchObject({ code: 'project_unreachable', permanent: false });
  });

  test('while what it fetches itself cannot be reached', async () => {
    const url = await refusedUrl();
    await expect(finish(() => fetch(url))).rejects.toMatchObject({ code: 'connection_refused', permanent: false });
  });

  test('when finishing takes too long, even if the function does not listen', async () => {
    const given: AbortSignal[] = [];
    const never: Finish<unknown> = (_, { signal }) => {
      given.push(signal);
      return new Promise(() => {});
    };
    const controller = new AbortController();
    const finishing = finish(never, { signal: controller.signal });
    controller.abort(new DOMException('5 s are over', 'TimeoutError'));
    await expect(finishing).rejects.toMatchObject({ code: 'timeout', permanent: false });
    await expect(finish(never, { signal: controller.signal })).rejects.toMatchObject({ code: 'timeout' });
    expect(given.every((signal) => signal === controller.signal)).toBe(true);
  });

  test('but not for what Storage will refuse again', async () => {
    const server = await startServer(() => ({ status: 400, json: { statusCode: '413', message: 'too large' } }));
    const outcome = await finish(write, { env: projectAt(server.url) });
    expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'request_rejected', permanent: true } });
  });
});
